// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @score_and_mask(
func.func @score_and_mask(%q: !t, %k: !t, %v: !t, %bias: f32, %window: index) -> !t {
  // CHECK: attn.attention
  // CHECK: score(
  // CHECK: arith.addf
  // CHECK: mask(
  // CHECK: arith.subi
  // CHECK: : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %sum = arith.addf %s, %bias : f32
      attn.yield %sum : f32
    }
    mask(%b, %h, %m, %n) {
      %first = arith.subi %m, %window : index
      %keep = arith.cmpi sge, %n, %first : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
