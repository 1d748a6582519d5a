// RUN: attn-opt %s --attn-verify-room=room=grid | FileCheck %s

// CHECK-LABEL: func @grid(
// CHECK: scf.forall
// CHECK: attn.attention
func.func @grid(%q: tensor<1x1x128x16xf16>) -> tensor<1x1x128x16xf16> {
  %e = tensor.empty() : tensor<1x1x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (1, 1, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<1x1x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x128x16xf16> to tensor<1x1x64x16xf16>
    %ot = attn.attention %qt, %q, %q : tensor<1x1x64x16xf16>, tensor<1x1x128x16xf16>, tensor<1x1x128x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<1x1x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<1x1x128x16xf16>
}
