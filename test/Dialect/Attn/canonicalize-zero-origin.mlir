// RUN: attn-opt %s --canonicalize | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @zeros(
func.func @zeros(%q: !t) -> !t {
  // CHECK-NOT: at(
  // CHECK: return
  %c0 = arith.constant 0 : index
  %o = attn.attention %q, %q, %q at(%c0, %c0, %c0, %c0) : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func @one(
func.func @one(%q: !t) -> !t {
  // CHECK: at(%c0, %c0, %c0, %c1)
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = attn.attention %q, %q, %q at(%c0, %c0, %c0, %c1) : !t, !t, !t -> !t
  return %o : !t
}
