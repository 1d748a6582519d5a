// RUN: attn-opt %s --attn-to-online="target=cuda fused=true" --convert-attn-to-tile | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!wide = tensor<?x?x?x128xbf16>
!row = tensor<?x?x?xf32>
!ids = tensor<?x?xi32>

// A warpgroup searches, and stores a number; blocks of the attention load the four of their tile.
// CHECK-LABEL: func @documents_searches(
// CHECK-SAME:  tile.kernel = #tile.kernel<warpgroups = 1
// CHECK:       scf.if
// CHECK:       scf.while
// CHECK:       memref.load
// CHECK:       memref.store %{{.*}} : memref<?x1x?x4xi32,
// CHECK-LABEL: func @documents(
// CHECK-COUNT-4: memref.load %{{.*}} : memref<?x1x?x4xi32,
// CHECK-NOT:   scf.while
// Where each row keeps its own key, a key may be dropped by all of them only if there are not as many.
// CHECK:       %[[M:.*]] = memref.dim %arg0, %c2
// CHECK:       %[[N:.*]] = memref.dim %arg1, %c2
// CHECK:       %[[OBLONG:.*]] = arith.cmpi ne, %[[M]], %[[N]]
// CHECK:       tile.clear_unread {{.*}} if %[[OBLONG]] :
// CHECK:       scf.for
// CHECK:       %[[PARTIAL:.*]] = arith.xori %{{.*}}, %true
// CHECK:       %[[MAY:.*]] = arith.andi %[[PARTIAL]], %{{.*}} : i1
// CHECK:       tile.clear_unread {{.*}} if %[[MAY]] :
func.func @documents(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t {
  %s = attn.assume nondecreasing %ids : !ids
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.causal<bottom_right>] captures(%s, %s : !ids, !ids)
      {attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>} : !t, !t, !t -> !t
  return %o : !t
}

// What the gradient of queries would search for is searched for by no one where blocks of keys add it.
// CHECK-LABEL: func @gradients_rows(
// CHECK:       func @gradients_searches(
// CHECK-NOT:   _searches
// CHECK:       func @gradients_key_value(
// CHECK-NOT:   _searches
// CHECK:       func @gradients_query(
// CHECK-NOT:   _searches
func.func @gradients(%q: !wide, %k: !wide, %v: !wide, %o: !wide, %l: !row, %d: !wide, %ids: !ids) -> (!wide, !wide, !wide) {
  %s = attn.assume nondecreasing %ids : !ids
  %r:3 = attn.attention_grad %q, %k, %v, %o, %l, %d variants [#attn.document, #attn.causal<bottom_right>] captures(%s, %s : !ids, !ids)
      : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}
