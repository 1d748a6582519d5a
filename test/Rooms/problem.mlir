// RUN: attn-opt %s --attn-verify-room=room=problem | FileCheck %s

!t = tensor<?x?x?x16xf16>


// Whole tensors: attention with or without variants, and elementwise work around it.
// CHECK-LABEL: func @problem(
func.func @problem(%q: !t, %k: !t, %o: !t) -> !t {
  // CHECK: linalg.copy
  // CHECK: attn.attention
  %copy = linalg.copy ins(%q : !t) outs(%o : !t) -> !t
  %r = attn.attention %copy, %k, %k variants [#attn.causal<top_left>] : !t, !t, !t -> !t
  return %r : !t
}
