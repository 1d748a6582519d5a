// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

!q = tensor<2x6x?x64xbf16>
!k = tensor<2x2x?x64xbf16>
!row = tensor<2x6x?xf32>

// CHECK-LABEL: func @grad(
func.func @grad(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !row, %do: !q) -> (!q, !k, !k) {
  // CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (2, 6, %{{.*}}) step (1, 1, 32)
  // CHECK: attn.row_delta
  %nl, %delta = attn.row_delta %o, %do, %lse {attn.schedule = #attn.schedule<block_m = 32, block_n = 48>}
    : !q, !q, !row -> !row, !row
  // Rows of a query head with all keys of its key head.
  // CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (2, 6, %{{.*}}) step (1, 1, 32)
  // CHECK: attn.attention_grad_query
  // CHECK-SAME: tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>
  %dq = attn.attention_grad_query %q, %k, %v, %do, %nl, %delta {attn.schedule = #attn.schedule<block_m = 32, block_n = 48>}
    : !q, !k, !k, !q, !row, !row -> d_query(!q)
  // Keys of a key head with all rows of the three query heads of its group.
  // CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (2, 2, %{{.*}}) step (1, 1, 48)
  // CHECK: attn.attention_grad_key_value
  // CHECK-SAME: tensor<1x3x?x64xbf16>, tensor<1x1x?x64xbf16>
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %nl, %delta
    {attn.schedule = #attn.schedule<block_m = 32, block_n = 48>}
    : !q, !k, !k, !q, !row, !row -> d_key(!k) d_value(!k)
  return %dq, %dk, %dv : !q, !k, !k
}
