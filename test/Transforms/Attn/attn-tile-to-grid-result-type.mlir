// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

// The result keeps its own type where the query's says more.
// CHECK-LABEL: func @cast(
func.func @cast(%q: tensor<2x4x128x16xf16>, %k: tensor<2x4x128x16xf16>) -> tensor<?x?x?x16xf16> {
  // CHECK: %[[R:.*]] = scf.forall {{.*}} -> (tensor<2x4x128x16xf16>)
  // CHECK: %[[CAST:.*]] = tensor.cast %[[R]] : tensor<2x4x128x16xf16> to tensor<?x?x?x16xf16>
  // CHECK: return %[[CAST]]
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<2x4x128x16xf16>, tensor<2x4x128x16xf16>, tensor<2x4x128x16xf16> -> tensor<?x?x?x16xf16>
  return %o : tensor<?x?x?x16xf16>
}
