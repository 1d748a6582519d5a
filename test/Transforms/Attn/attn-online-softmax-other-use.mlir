// RUN: attn-opt %s --attn-online-softmax --canonicalize | FileCheck %s

// A result that does more than leave the grid gets its dimensions B and H back.
// CHECK-LABEL: func @other_use(
func.func @other_use(%q: tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32> {
  %e = tensor.empty() : tensor<1x1x64x16xf32>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (1, 1, 64) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<1x1x64x16xf32>) {
    // CHECK: %[[O:.*]] = attn.normalize
    // CHECK: %[[FULL:.*]] = tensor.insert_slice %[[O]] into %{{.*}} : tensor<64x16xf32> into tensor<1x1x64x16xf32>
    // CHECK: linalg.abs ins(%[[FULL]]
    %x = attn.attention %q, %q, %q : tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32>, tensor<1x1x64x16xf32> -> tensor<1x1x64x16xf32>
    %y = linalg.abs ins(%x : tensor<1x1x64x16xf32>) outs(%e : tensor<1x1x64x16xf32>) -> tensor<1x1x64x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf32> into tensor<1x1x64x16xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<1x1x64x16xf32>
}
