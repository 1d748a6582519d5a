// RUN: attn-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s

// A tile of all heads reads all key heads.
// CHECK-LABEL: func @rows(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x8x64x16xf16>, %[[K:[a-z0-9]+]]: tensor<2x2x100x16xf16>
func.func @rows(%q: tensor<2x8x64x16xf16>, %k: tensor<2x2x100x16xf16>) -> (tensor<2x8x64x16xf16>, tensor<2x8x64xf32>) {
  // CHECK: scf.for %[[M:.*]] = %c0 to %c64 step %c32
  // CHECK-NOT: scf.for
  // CHECK: %[[TILE:.*]] = tensor.extract_slice %[[Q]][0, 0, %[[M]], 0] [2, 8, 32, 16]
  // CHECK: %[[O:.*]], %[[LSE:.*]] = attn.attention %[[TILE]], %[[K]], %[[K]] at(%c0, %c0, %[[M]], %c0)
  // CHECK: tensor.insert_slice %[[O]] into %{{.*}}[0, 0, %[[M]], 0] [2, 8, 32, 16]
  // CHECK: tensor.insert_slice %[[LSE]] into %{{.*}}[0, 0, %[[M]]] [2, 8, 32]
  %o, %lse = attn.attention %q, %k, %k : tensor<2x8x64x16xf16>, tensor<2x2x100x16xf16>, tensor<2x2x100x16xf16> -> tensor<2x8x64x16xf16>, tensor<2x8x64xf32>
  return %o, %lse : tensor<2x8x64x16xf16>, tensor<2x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled:2 = transform.structured.tile_using_for %op tile_sizes [0, 0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
