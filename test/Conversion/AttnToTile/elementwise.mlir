// RUN: attn-opt %s --convert-attn-to-tile | FileCheck %s

// An op on tensors of a block works on their tiles, whose rows are block_m where the block's are dynamic.
// CHECK-LABEL: func.func @rows
func.func @rows(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xbf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xbf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xbf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xbf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> tensor<?x?x?x64xbf16> {
    %r = affine.min affine_map<(d0)[s0] -> (-d0 + s0, 128)>(%k)[%m]
    %e = tensor.empty(%r) : tensor<?x64xf32>
    %t = linalg.fill ins(%one : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    // CHECK: %[[TANH:.*]] = math.tanh %{{.*}} : tensor<128x64xf32>
    %x = math.tanh %t : tensor<?x64xf32>
    // CHECK: %[[HALF:.*]] = arith.truncf %[[TANH]] : tensor<128x64xf32> to tensor<128x64xbf16>
    %y = arith.truncf %x : tensor<?x64xf32> to tensor<?x64xbf16>
    scf.forall.in_parallel {
      // CHECK: tile.store %[[HALF]] to
      tensor.parallel_insert_slice %y into %out[%i, %j, %k, 0] [1, 1, %r, 64] [1, 1, 1, 1] : tensor<?x64xbf16> into tensor<?x?x?x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %o : tensor<?x?x?x64xbf16>
}
