// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @lse(
func.func @lse(%q: !t, %k: !t, %v: !t) -> (!t, tensor<?x?x?xf32>) {
  // CHECK: %[[O:.*]], %[[LSE:.*]] = attn.attention {{.*}} -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
  // CHECK: return %[[O]], %[[LSE]]
  %o, %lse = attn.attention %q, %k, %v : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %o, %lse : !t, tensor<?x?x?xf32>
}

// CHECK-LABEL: func @low(
func.func @low(%q: !t) -> (!t, tensor<?x?x?xf32>, tensor<?x?x?xf32>) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = attn.attention {{.*}} -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>, tensor<?x?x?xf32>
  %o, %lse, %low = attn.attention %q, %q, %q : !t, !t, !t -> !t, tensor<?x?x?xf32>, tensor<?x?x?xf32>
  return %o, %lse, %low : !t, tensor<?x?x?xf32>, tensor<?x?x?xf32>
}
