// RUN: attn-opt %s --attn-to-online=target=cuda | FileCheck %s

!t = tensor<?x?x?x128xbf16>
!ids = tensor<?x?xi32>

// One status for all heads, a block for each tile of rows and of keys. Keys behind the diagonal are not looked at.
// CHECK-LABEL: func @documents(
// CHECK: %[[N:.*]] = tensor.dim %arg1, %c2
// CHECK: %[[STATUS:.*]] = scf.forall (%[[TILE:.*]], %[[B:.*]], %{{.*}}, %[[M:.*]]) = (0, 0, 0, 0) to (%[[N]], %{{.*}}, 1, %{{.*}}) step (128, 1, 1, 128) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<?x1x?x?xi32>)
// CHECK: %[[ROW:.*]] = affine.apply {{.*}}()[%[[M]]]
// CHECK: %[[PLACE:.*]] = affine.apply {{.*}}()[%[[TILE]]]
// CHECK: %[[ONE:.*]] = tensor.extract_slice %[[OUT]][%[[B]], 0, %[[ROW]], %[[PLACE]]] [1, 1, 1, 1]
// CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %[[TILE]],
// CHECK: %[[LIVE:.*]] = arith.andi %{{.*}}, %[[BEFORE]]
// CHECK: %[[KEYS:.*]] = arith.select %[[LIVE]], %{{.*}}, %c0
// CHECK: %[[KEPT:.*]] = attn.tile_status %{{.*}} rows, %[[KEYS]] keys size 128 at(%[[B]], %c0, %[[M]], %[[TILE]]) outs(%[[ONE]])
// CHECK: tensor.parallel_insert_slice %[[KEPT]] into %[[OUT]]
// CHECK: %[[LISTS:.*]]:2 = scf.forall {{.*}} step (1, 1, 128) shared_outs({{.*}}) -> (tensor<?x1x?x?xi32>, tensor<?x1x?x2xi32>)
// CHECK: tensor.extract_slice %[[STATUS]]
// CHECK: attn.list_tiles %{{.*}} size 128
// CHECK: scf.forall (%[[B:.*]], %{{.*}}, %[[M:.*]]) =
// CHECK: %[[ROW:.*]] = affine.apply {{.*}}()[%[[M]]]
// CHECK: %[[COUNT:.*]] = tensor.extract %[[LISTS]]#1[%[[B]], %c0, %[[ROW]], %c0]
// CHECK: %[[CUT:.*]] = arith.index_cast %[[COUNT]]
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[CUT]], %c0
// CHECK: scf.if %[[ANY]]
// CHECK: %[[KEY:.*]] = tensor.extract %[[LISTS]]#0[%[[B]], %c0, %[[ROW]], %c0]
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[KEY]]
// CHECK: affine.min {{.*}}(%[[FIRST]])
// CHECK: attn.online_attention {{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}, %[[FIRST]])
// CHECK: mask(
// CHECK: scf.for %[[I:.*]] = %c1 to %[[CUT]] step %c1
// CHECK: %[[KEY:.*]] = tensor.extract %[[LISTS]]#0[%[[B]], %c0, %[[ROW]], %[[I]]]
// CHECK: attn.online_attention {{.*}}
// CHECK: mask(
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %c1
// CHECK: %[[KEY:.*]] = tensor.extract %[[LISTS]]#0[%[[B]], %c0, %[[ROW]], %[[I]]]
// CHECK: attn.online_attention
// CHECK-NOT: mask(
// CHECK: return
func.func @documents(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.causal<top_left>] captures(%ids, %ids : !ids, !ids) : !t, !t, !t -> !t
  return %o : !t
}

// A mask of heads, for all batches alike.
// CHECK-LABEL: func @heads(
// CHECK: scf.forall {{.*}} to (%{{.*}}, 1, %{{.*}}, %{{.*}}) step (128, 1, 1, 128) {{.*}} -> (tensor<1x?x?x?xi32>)
// CHECK: attn.tile_status
func.func @heads(%q: !t, %k: !t, %v: !t, %kept: tensor<?x?x?xi1>) -> !t {
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %keep = tensor.extract %kept[%h, %m, %n] : tensor<?x?x?xi1>
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Bounds that a search finds, or that positions have: no list.
// CHECK-LABEL: func @sorted(
// CHECK-NOT: attn.list_tiles
// CHECK-LABEL: func @causal(
// CHECK-NOT: attn.list_tiles
// CHECK-LABEL: func @remainder(
// CHECK-NOT: attn.list_tiles
func.func @sorted(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t {
  %sorted = attn.assume nondecreasing %ids : !ids
  %o = attn.attention %q, %k, %v variants [#attn.document] captures(%sorted, %sorted : !ids, !ids) : !t, !t, !t -> !t
  return %o : !t
}

func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.causal<top_left>] : !t, !t, !t -> !t
  return %o : !t
}

func.func @remainder(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %c3 = arith.constant 3 : index
    %rest = arith.remui %n, %c3 : index
    %keep = arith.cmpi eq, %rest, %m : index
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %o : !t
}
