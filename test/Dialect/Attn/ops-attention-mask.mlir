// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @mask(
func.func @mask(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: attn.attention
  // CHECK-NOT: score
  // CHECK-NEXT: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sle, %[[N]], %[[M]] : index
  // CHECK-NEXT: attn.yield %[[KEEP]] : i1
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
