// RUN: attn-opt %s --attn-to-online=target=cuda | FileCheck %s
// RUN: attn-opt %s --attn-to-online="target=cuda fused=false" | FileCheck %s --check-prefix=GRAD

!t = tensor<?x?x?x128xbf16>
!row = tensor<?x?x?xf32>
!ids = tensor<?x?xi32>

// All heads have the same ends: a block for each batch, tile of rows and search.
// CHECK-LABEL: func @documents(
// CHECK:      %[[SORTED:.*]] = attn.assume nondecreasing %arg3
// CHECK:      %[[ENDS:.*]] = scf.forall (%[[P:.*]], %[[B:.*]], %{{.*}}, %[[M:.*]]) = (0, 0, 0, 0) to (4, %{{.*}}, 1, %{{.*}}) step (1, 1, 1, 128) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<?x1x?x4xi32>)
// CHECK:      %[[FIRST:.*]] = arith.cmpi eq, %[[P]], %c0
// CHECK:      %[[FOUND:.*]] = scf.if %[[FIRST]] -> (index)
// CHECK:      scf.while
// CHECK:      tensor.extract %[[SORTED]][%[[B]],
// CHECK:      %[[NUMBER:.*]] = arith.index_cast %[[FOUND]] : index to i32
// CHECK:      %[[LIST:.*]] = tensor.from_elements %[[NUMBER]] : tensor<1xi32>
// CHECK:      %[[TILE:.*]] = affine.apply {{.*}}()[%[[M]]]
// CHECK:      tensor.parallel_insert_slice %[[LIST]] into %[[OUT]][%[[B]], 0, %[[TILE]], %[[P]]] [1, 1, 1, 1]
// CHECK:      scf.forall (%[[B:.*]], %{{.*}}, %[[M:.*]]) =
// CHECK:      %[[TILE:.*]] = affine.apply {{.*}}()[%[[M]]]
// CHECK-COUNT-4: tensor.extract %[[ENDS]][%[[B]], %c0, %[[TILE]], %c{{[0-3]}}]
// CHECK-NOT:  scf.while
// CHECK:      attn.online_attention
// CHECK-NOT:  scf.while
// CHECK:      return
func.func @documents(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t {
  %s = attn.assume nondecreasing %ids : !ids
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.causal<bottom_right>] captures(%s, %s : !ids, !ids) : !t, !t, !t -> !t
  return %o : !t
}

// A mask of each head has ends of its own.
// CHECK-LABEL: func @by_head(
// CHECK:      scf.forall {{.*}} = (0, 0, 0, 0) to ({{[0-9]+}}, 1, %{{.*}}, %{{.*}}) step (1, 1, 1, 128) {{.*}} -> (tensor<1x?x?x{{[0-9]+}}xi32>)
// CHECK:      scf.while
func.func @by_head(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t {
  %s = attn.assume nondecreasing %ids : !ids
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = tensor.extract %s[%h, %m] : !ids
    %j = tensor.extract %s[%h, %n] : !ids
    %keep = arith.cmpi eq, %i, %j : i32
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Gradients of keys have ends that are the same in all heads of the loop over them, and need no search there.
// GRAD-LABEL: func @gradients(
// GRAD:      %[[ROWS:.*]] = scf.forall {{.*}} -> (tensor<?x1x?x{{[0-9]+}}xi32>)
// GRAD:      scf.while
// GRAD:      scf.forall
// GRAD-COUNT-4: tensor.extract %[[ROWS]]
// GRAD-NOT:  scf.while
// GRAD:      attn.grad_query_step
// GRAD:      %[[KEYS:.*]] = scf.forall {{.*}} -> (tensor<?x1x?x{{[0-9]+}}xi32>)
// GRAD:      scf.while
// GRAD:      scf.forall
// GRAD-COUNT-4: tensor.extract %[[KEYS]]
// GRAD-NOT:  scf.while
// GRAD:      attn.grad_key_value_step
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %l: !row, %d: !t, %ids: !ids) -> (!t, !t, !t) {
  %s = attn.assume nondecreasing %ids : !ids
  %r:3 = attn.attention_grad %q, %k, %v, %o, %l, %d variants [#attn.document, #attn.causal<bottom_right>] captures(%s, %s : !ids, !ids)
      : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %r#0, %r#1, %r#2 : !t, !t, !t
}
