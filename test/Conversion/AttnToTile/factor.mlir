// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// s15: the factor is made behind the exponentials, of what it is made of alone, and the sum of weights does not know it.
// CHECK:      tile.mma
// CHECK-NOT:  math.sqrt
// CHECK:      %[[P:.*]] = math.exp2 %{{.*}} : tensor<{{[0-9]+x[0-9]+}}xf32>
// CHECK:      tile.reduce add %[[P]]
// CHECK-NOT:  math.tanh
// CHECK:      %[[F:.*]] = math.sqrt
// CHECK:      %[[PF:.*]] = arith.mulf %[[P]], %[[F]]
// CHECK-NEXT: arith.truncf %[[PF]]
func.func @f(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      %i = arith.index_cast %n : index to i32
      %x = arith.sitofp %i : i32 to f32
      %f = math.sqrt %x : f32
      attn.yield %t, %f : f32, f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
