// RUN: attn-opt %s --attn-to-online=target=cuda | FileCheck %s
// RUN: attn-opt %s --attn-to-online=target=cuda --remarks-filter=attn --remark-format=emitRemark -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// Masks that read a tensor at quotients of the positions: one read a tile, and no mask by element where that says all.

!t = tensor<?x?x?x128xbf16>
!keep = tensor<?x?x?xi1>

// REMARK-DAG: listed by 1 read a tile; in listed tiles the mask keeps every n; drops nothing
// REMARK-DAG: listed by 1 read a tile; in listed tiles the mask keeps n < m1; drops n >= m0 + 1
// REMARK-DAG: listed by the mask's elements where reads of a tile allow any

// A grid computes the status of 16 tiles in each block, places past the end are moved inside, and a grid lists them.
// CHECK-LABEL: func @blocks(
// CHECK-SAME: %[[KEEP:[a-z0-9]+]]: tensor<?x?x?xi1>)
// CHECK-NOT: attn.tile_status
// CHECK: %[[STATUS:.*]] = scf.forall (%[[CHUNK:.*]], %{{.*}}, %[[H:.*]], %[[M:.*]]) = (0, 0, 0, 0) to (%{{.*}}, 1, %{{.*}}, %{{.*}}) step (1, 1, 1, 128) {{.*}} -> (tensor<1x?x?x?xi32>)
// CHECK: arith.floordivsi %[[M]], %c128
// CHECK: %[[LEAST:.*]] = arith.minsi
// CHECK: %[[ROW:.*]] = arith.maxsi %[[LEAST]], %c0
// CHECK: %[[KEPT:.*]] = tensor.extract %[[KEEP]][%[[H]], %[[ROW]], %{{.*}}]
// CHECK: arith.select %[[KEPT]], %{{.*}}, %c0
// CHECK-COUNT-15: tensor.extract %[[KEEP]]
// CHECK-NOT: tensor.extract %[[KEEP]]
// CHECK: tensor.from_elements {{.*}} : tensor<16xi32>
// CHECK: %[[LISTS:.*]]:2 = scf.forall
// CHECK: tensor.extract_slice %[[STATUS]]
// CHECK: attn.list_tiles
// The attention has no mask.
// CHECK: scf.forall
// CHECK: scf.if
// CHECK-COUNT-2: attn.online_attention
// CHECK-NOT: mask(
// CHECK-LABEL: func @under_diagonal(
func.func @blocks(%q: !t, %k: !t, %v: !t, %keep: !keep) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %kept = tensor.extract %keep[%h, %i, %j] : !keep
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// The mask of cut tiles is the diagonal alone, and ends with it.
// CHECK-NOT: attn.tile_status
// CHECK: attn.list_tiles
// CHECK: attn.online_attention {{.*}}attn.kept_keys = "prefix"
// CHECK-NEXT: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
// CHECK-NEXT: %[[KEPT:.*]] = arith.cmpi sle, %[[N]], %[[M]]
// CHECK-NEXT: attn.yield %[[KEPT]]
// CHECK: attn.online_attention {{.*}}attn.kept_keys = "prefix"
// CHECK-NEXT: mask(
// CHECK: attn.online_attention
// CHECK-NOT: mask(
// CHECK-LABEL: func @documents(
func.func @under_diagonal(%q: !t, %k: !t, %v: !t, %keep: !keep) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %kept = tensor.extract %keep[%h, %i, %j] : !keep
    %before = arith.cmpi sle, %n, %m : index
    %both = arith.andi %kept, %before : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Documents vote, on tiles that the read allows.
// CHECK: %[[KEPT:.*]] = tensor.extract %arg4
// CHECK: %[[END:.*]] = arith.select %[[KEPT]], %{{.*}}, %c0
// CHECK: attn.tile_status
// CHECK-NOT: tensor.extract %arg4
// CHECK: attn.list_tiles
// CHECK-LABEL: func @full_or_partial(
func.func @documents(%q: !t, %k: !t, %v: !t, %ids: tensor<?x?xi32>, %keep: !keep) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %kept = tensor.extract %keep[%h, %i, %j] : !keep
    %row = tensor.extract %ids[%b, %m] : tensor<?x?xi32>
    %key = tensor.extract %ids[%b, %n] : tensor<?x?xi32>
    %same = arith.cmpi eq, %row, %key : i32
    %both = arith.andi %kept, %same : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Two tables, one of blocks that are kept whole: what is read stands beside the mask, once a tile.
// CHECK-NOT: attn.tile_status
// CHECK: attn.list_tiles
// CHECK: %[[FULL:.*]] = tensor.extract %arg3
// CHECK: %[[PART:.*]] = tensor.extract %arg4
// CHECK: attn.online_attention
// CHECK-NEXT: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
// CHECK: %[[BEFORE:.*]] = arith.cmpi sle, %[[N]], %[[M]]
// CHECK: arith.andi %[[PART]], %[[BEFORE]]
// CHECK-NOT: tensor.extract
// CHECK: attn.yield
func.func @full_or_partial(%q: !t, %k: !t, %v: !t, %full: !keep, %partial: !keep) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %whole = tensor.extract %full[%h, %i, %j] : !keep
    %some = tensor.extract %partial[%h, %i, %j] : !keep
    %before = arith.cmpi sle, %n, %m : index
    %part = arith.andi %some, %before : i1
    %kept = arith.ori %whole, %part : i1
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}
