// RUN: attn-opt %s --attn-append-gradients --attn-to-online=target=cuda | FileCheck %s
// RUN: attn-opt %s --attn-append-gradients --attn-to-online="target=cuda fused=true" | FileCheck %s --check-prefix=FUSED

!t = tensor<?x?x?x64xbf16>

// Gradients of queries visit the keys of their rows' lists, which are those of the forward pass where tiles are alike, and those of keys and
// values the rows of their columns' lists. Lists are by query head, which a block of keys takes one after the other. One loop visits all tiles,
// since none has a mask.
// CHECK-LABEL: func @blocks(
// CHECK: %[[ROWS:.*]]:2 = scf.forall {{.*}} -> (tensor<1x?x?x?xi32>, tensor<1x?x?x2xi32>)
// CHECK: attn.list_tiles %{{.*}} size 128
// CHECK: attn.online_attention
// CHECK-NOT: attn.list_tiles
// CHECK: %[[COUNT:.*]] = tensor.extract %[[ROWS]]#1[%c0, %{{.*}}, %{{.*}}, %c0]
// CHECK: %[[CUT:.*]] = arith.index_cast %[[COUNT]]
// CHECK: scf.for %[[I:.*]] = %c0 to %[[CUT]]
// CHECK: tensor.extract %[[ROWS]]#0[%c0, %{{.*}}, %{{.*}}, %[[I]]]
// CHECK: attn.grad_query_step
// CHECK-NOT: mask(
// CHECK-NOT: scf.for %
// CHECK: %[[COLUMNS:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (1, %[[HEADS:.*]], %{{.*}}) step (1, 1, 128)
// CHECK: attn.list_tiles %{{.*}} size 128
// CHECK: scf.for %[[TURN:.*]] = %c0 to
// CHECK: %[[HEAD:.*]] = arith.addi %{{.*}}, %[[TURN]]
// CHECK: tensor.extract %[[COLUMNS]]#1[%c0, %[[HEAD]], %{{.*}}, %c0]
// CHECK: scf.for
// CHECK: tensor.extract %[[COLUMNS]]#0[%c0, %[[HEAD]],
// CHECK: attn.grad_key_value_step
// CHECK-NOT: mask(
// CHECK-LABEL: func @under_diagonal(

// Blocks of keys add to the gradients of queries, which have no loop and no list.
// FUSED-LABEL: func @blocks(
// FUSED: attn.list_tiles
// FUSED: attn.online_attention
// FUSED: scf.for %[[N:.*]] = %c0 to %{{.*}} step %c128
// FUSED: attn.grad_query_step {{.*}}attn.fused
// FUSED: attn.list_tiles
// FUSED: attn.grad_key_value_step {{.*}}attn.fused
// FUSED-LABEL: func @under_diagonal(
func.func @blocks(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?x?xi1>) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c128 : index
    %j = arith.divui %n, %c128 : index
    %kept = tensor.extract %keep[%h, %i, %j] : tensor<?x?x?xi1>
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// A loop with the diagonal for the tiles at the front of a list, and one without a mask for those at its end.
// CHECK: attn.grad_key_value_step
// CHECK-NEXT: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
// CHECK-NEXT: %[[KEPT:.*]] = arith.cmpi sle, %[[N]], %[[M]]
// CHECK-NEXT: attn.yield %[[KEPT]]
// CHECK: scf.for
// CHECK: attn.grad_key_value_step
// CHECK-NOT: mask(
// CHECK-LABEL: func @parts(
func.func @under_diagonal(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?xi1>) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c128 : index
    %j = arith.divui %n, %c128 : index
    %kept = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
    %before = arith.cmpi sle, %n, %m : index
    %both = arith.andi %kept, %before : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// A tile of 128 x 64 has two blocks of 64 x 64: 16 tiles of a list take 32 reads. A tile has the mask unless both are kept.
// CHECK: attn.online_attention
// CHECK: scf.forall
// CHECK-COUNT-32: tensor.extract %arg3
// CHECK-NOT: tensor.extract %arg3
// CHECK: tensor.from_elements
// CHECK: attn.list_tiles %{{.*}} size 64
// CHECK: scf.for
// CHECK: attn.grad_query_step
// CHECK-NEXT: mask(
// CHECK: tensor.extract %arg3
// CHECK: scf.for
// CHECK: attn.grad_query_step
// CHECK-NOT: mask(
// CHECK: attn.list_tiles
// CHECK: attn.grad_key_value_step
// CHECK-NEXT: mask(
func.func @parts(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?xi1>) -> !t {
  %c64 = arith.constant 64 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c64 : index
    %j = arith.divui %n, %c64 : index
    %kept = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}
