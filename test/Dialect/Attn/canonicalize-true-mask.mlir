// RUN: attn-opt %s --canonicalize | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// A mask region that yields a constant true masks nothing.
// CHECK-LABEL: func @true_mask(
func.func @true_mask(%q: !t) -> !t {
  // CHECK: attn.attention
  // CHECK-NOT: mask
  // CHECK: return
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %true = arith.constant true
      attn.yield %true : i1
    } : !t, !t, !t -> !t
  return %o : !t
}

// One that turns out to.
// CHECK-LABEL: func @folded(
func.func @folded(%q: !t) -> !t {
  // CHECK: attn.attention
  // CHECK-NOT: mask
  // CHECK: return
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %m, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}

// A constant false is not dropped: every row is empty.
// CHECK-LABEL: func @false_mask(
func.func @false_mask(%q: !t) -> !t {
  // CHECK: mask(
  // CHECK-NEXT: attn.yield %false : i1
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %false = arith.constant false
      attn.yield %false : i1
    } : !t, !t, !t -> !t
  return %o : !t
}

// What else the region computes goes with it.
// CHECK-LABEL: func @with_other_ops(
func.func @with_other_ops(%q: !t, %ids: tensor<?x?xindex>) -> !t {
  // CHECK: attn.attention
  // CHECK-NOT: mask
  // CHECK: return
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %true = arith.constant true
      %id = tensor.extract %ids[%b, %m] : tensor<?x?xindex>
      %c7 = arith.constant 7 : index
      %low = arith.andi %id, %c7 : index
      %same = arith.cmpi ne, %low, %n : index
      %keep = arith.ori %true, %same : i1
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
