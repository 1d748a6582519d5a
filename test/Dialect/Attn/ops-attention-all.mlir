// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// Everything at once, in the one order of the syntax.
// CHECK-LABEL: func @all(
func.func @all(%q: !t, %k: !t, %v: !t, %lengths: tensor<?xi32>, %scale: f32, %sink: tensor<?xf32>, %i: index) -> (!t, tensor<?x?x?xf32>) {
  // CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} variants [#attn.causal<top_left>, #attn.key_length]
  // CHECK-SAME: captures(%{{.*}} : tensor<?xi32>) scale(%{{.*}}) sink(%{{.*}} : tensor<?xf32>) at(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
  // CHECK-SAME: {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 2>}
  // CHECK: score(
  // CHECK: mask(
  %o, %lse = attn.attention %q, %k, %v variants [#attn.causal<top_left>, #attn.key_length] captures(%lengths : tensor<?xi32>)
    scale(%scale) sink(%sink : tensor<?xf32>) at(%i, %i, %i, %i) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 2>}
    score(%s, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi ne, %m, %n : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %o, %lse : !t, tensor<?x?x?xf32>
}
