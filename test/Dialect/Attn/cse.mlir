// RUN: attn-opt %s --cse | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// Equal attentions, regions included, are one.
// CHECK-LABEL: func @equal(
func.func @equal(%q: !t) -> (!t, !t) {
  // CHECK-COUNT-1: attn.attention
  // CHECK-NOT: attn.attention
  // CHECK: return
  %a = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  %c = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %a, %c : !t, !t
}

// CHECK-LABEL: func @different(
func.func @different(%q: !t) -> (!t, !t) {
  // CHECK-COUNT-2: attn.attention
  %a = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  %c = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi slt, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %a, %c : !t, !t
}
