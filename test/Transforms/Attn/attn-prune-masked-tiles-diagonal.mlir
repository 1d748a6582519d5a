// RUN: attn-opt %s --attn-to-online=target=cuda | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!ids = tensor<?x?xi32>

// Rows and keys have the same ids: whatever these are, a row keeps its own key.
// CHECK-LABEL:   func @same(
// CHECK-COUNT-2: attn.kept_keys = "diagonal"
func.func @same(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.causal<top_left>] captures(%ids, %ids : !ids, !ids) : !t, !t, !t -> !t
  return %o : !t
}

// Promises about the ids change nothing of that.
// CHECK-LABEL:   func @assumed(
// CHECK-COUNT-2: attn.kept_keys = "diagonal"
func.func @assumed(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t {
  %s = attn.assume nondecreasing %ids : !ids
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.causal<bottom_right>] captures(%ids, %s : !ids, !ids) : !t, !t, !t -> !t
  return %o : !t
}

// Ids of two tensors may differ, a row may lack its own key, and shards have positions of their own.
// CHECK-LABEL: func @others(
// CHECK-NOT:   kept_keys
func.func @others(%q: !t, %k: !t, %v: !t, %i: !ids, %j: !ids, %first: index) -> (!t, !t, !t) {
  %a = attn.attention %q, %k, %v variants [#attn.document] captures(%i, %j : !ids, !ids) : !t, !t, !t -> !t
  %b = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %x = tensor.extract %i[%b, %m] : !ids
    %y = tensor.extract %i[%b, %n] : !ids
    %same = arith.cmpi eq, %x, %y : i32
    %before = arith.cmpi slt, %n, %m : index
    %keep = arith.andi %same, %before : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  %c0 = arith.constant 0 : index
  %c = attn.attention %q, %k, %v variants [#attn.document] captures(%i, %i : !ids, !ids) at(%c0, %c0, %first, %c0) : !t, !t, !t -> !t
  return %a, %b, %c : !t, !t, !t
}
