// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// Every extent but D and Dv may be known at run time only; D and Dv differ.
// CHECK-LABEL: func @attention(
// CHECK-SAME: %[[Q:.*]]: tensor<?x?x?x64xbf16>, %[[K:.*]]: tensor<?x?x?x64xbf16>, %[[V:.*]]: tensor<?x?x?x32xbf16>
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x32xbf16>) -> tensor<?x?x?x32xbf16> {
  // CHECK: attn.attention %[[Q]], %[[K]], %[[V]] : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x32xbf16> -> tensor<?x?x?x32xbf16>
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x32xbf16> -> tensor<?x?x?x32xbf16>
  return %o : tensor<?x?x?x32xbf16>
}
