// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// The captures of all variants, in the variants' order.
// CHECK-LABEL: func @composed(
// CHECK-SAME: %[[SLOPES:[a-z0-9]+]]: tensor<?xf32>, %[[IDS:[a-z0-9]+]]: tensor<?x?xi32>)
func.func @composed(%q: !t, %k: !t, %v: !t, %slopes: tensor<?xf32>, %ids: tensor<?x?xi32>) -> !t {
  // CHECK: variants [#attn.alibi<top_left>, #attn.causal<top_left>, #attn.document]
  // CHECK-SAME: captures(%[[SLOPES]], %[[IDS]], %[[IDS]] : tensor<?xf32>, tensor<?x?xi32>, tensor<?x?xi32>)
  %o = attn.attention %q, %k, %v variants [#attn.alibi<top_left>, #attn.causal<top_left>, #attn.document]
    captures(%slopes, %ids, %ids : tensor<?xf32>, tensor<?x?xi32>, tensor<?x?xi32>) : !t, !t, !t -> !t
  return %o : !t
}
