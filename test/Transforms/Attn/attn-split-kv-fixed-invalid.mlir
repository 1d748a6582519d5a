// RUN: attn-opt %s --attn-split-kv --verify-diagnostics

// Bits are promised, so that keys that cannot be split are an error and no remark.
func.func @precise(%q: tensor<2x2x128x16xf16>, %scale: f32, %acc: tensor<64x16xf32>, %row: tensor<64xf32>, %out: tensor<64x16xf64>, %e: tensor<2x2x128x16xf64>) -> tensor<2x2x128x16xf64> {
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf64>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<64x16xf16>
    // expected-error@+1 {{expected f16, bf16 or f32 results that leave the grid directly, which a fixed_split of 64 keys can merge}}
    %s:3 = attn.online_attention %qt, %qt, %qt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, fixed_split = 64>}
      : tensor<64x16xf16>, tensor<64x16xf16>, tensor<64x16xf16>, tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x16xf64> -> tensor<64x16xf64>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<64x16xf64> into tensor<2x2x128x16xf64>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf64>
}
