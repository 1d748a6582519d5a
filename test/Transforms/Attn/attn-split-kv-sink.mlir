// RUN: attn-opt %s --attn-online-softmax --attn-split-kv --canonicalize | FileCheck %s

// The sink counts once: the other parts get -inf.
// CHECK-LABEL: func @sink(
func.func @sink(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index, %sink: tensor<2xf32>) -> (tensor<2x2x128x16xf16>) {
  // CHECK: %[[NONE:.*]] = arith.constant 0xFF800000 : f32
  // CHECK: scf.forall (%[[PART:.*]], %{{.*}}, %{{.*}}, %{{.*}}) =
  // CHECK: attn.online_attention
  // CHECK: %[[X:.*]] = tensor.extract
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[PART]], %c0
  // CHECK: %[[S:.*]] = arith.select %[[FIRST]], %[[X]], %[[NONE]]
  // CHECK: attn.normalize {{.*}} sink(%[[S]])
  // CHECK: attn.merge
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %st = tensor.extract_slice %sink[%j] [1] [1] : tensor<2xf32> to tensor<1xf32>
    %ot = attn.attention %qt, %kt, %kt sink(%st : tensor<1xf32>) at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}
