// RUN: attn-opt %s --attn-append-gradients --attn-to-online=target=cpu | FileCheck %s
// RUN: attn-opt %s --attn-to-online="target=cpu lanes=8" | FileCheck %s --check-prefix=FITS

!t = tensor<?x?x?x64xf32>

// A tile is passed over by one read of the table, and has no mask otherwise, in both passes of a gradient too.
// CHECK-LABEL: func @blocks(
// CHECK-SAME: %[[KEEP:[a-z0-9]+]]: tensor<?x?x?xi1>
// CHECK: scf.for
// CHECK: %[[KEPT:.*]] = tensor.extract %[[KEEP]]
// CHECK-NEXT: scf.if %[[KEPT]]
// CHECK: attn.online_attention
// CHECK-NOT: mask(
// CHECK: } else {
// CHECK: %[[KEPT:.*]] = tensor.extract %[[KEEP]]
// CHECK-NEXT: scf.if %[[KEPT]]
// CHECK: attn.grad_query_step
// CHECK-NOT: mask(
// CHECK: %[[KEPT:.*]] = tensor.extract %[[KEEP]]
// CHECK-NEXT: scf.if %[[KEPT]]
// CHECK: attn.grad_key_value_step
// CHECK-NOT: mask(
// CHECK-LABEL: func @under_diagonal(

// Tiles of 96 keys would lie in two blocks.
// FITS-LABEL: func @blocks(
// FITS: scf.if
// FITS: attn.online_attention {{.*}}block_m = 64, block_n = 64
func.func @blocks(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?x?xi1>) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %kept = tensor.extract %keep[%h, %i, %j] : tensor<?x?x?xi1>
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Tiles before the diagonal have no mask, and those on it that of the diagonal.
// CHECK: scf.if
// CHECK: attn.online_attention
// CHECK-NOT: mask(
// CHECK: scf.if
// CHECK: attn.online_attention
// CHECK-NEXT: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
// CHECK-NEXT: %[[BEFORE:.*]] = arith.cmpi sle, %[[N]], %[[M]]
// CHECK-NEXT: attn.yield %[[BEFORE]]
// CHECK-LABEL: func @either(
func.func @under_diagonal(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?xi1>) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %kept = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
    %before = arith.cmpi sle, %n, %m : index
    %both = arith.andi %kept, %before : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// What a read does not drop it cannot decide: every tile has the mask, and none is passed over.
// CHECK: scf.for
// CHECK: attn.online_attention
// CHECK: mask(
// CHECK: tensor.extract
func.func @either(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?xi1>) -> !t {
  %c128 = arith.constant 128 : index
  %c7 = arith.constant 7 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %kept = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
    %rest = arith.remui %n, %c7 : index
    %some = arith.cmpi ne, %rest, %m : index
    %any = arith.ori %kept, %some : i1
    attn.yield %any : i1
  } : !t, !t, !t -> !t
  return %o : !t
}
