// A captured bias of bf16 may hold numbers too large for log2(e): the product that keeps them finite is one that is
// rounded towards zero, not a clamp of every score
// (which nothing reads then; LLVM drops it).
// RUN: attn-opt %s -split-input-file --attn-to-thread | FileCheck %s

// CHECK-LABEL: llvm.func @bf16_bias
// CHECK: llvm.nvvm.mul.rz.ftz.f
func.func @bf16_bias(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %bias: tensor<?x?xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.relative_bias<0, top_left>] captures(%bias : tensor<?x?xbf16>)
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// A clamp by the user, which is not that of the largest score, stays.
// CHECK-LABEL: llvm.func @clamped
// CHECK: llvm.intr.minimum
// CHECK-NOT: llvm.nvvm.mul.rz.ftz.f
func.func @clamped(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %bound = arith.constant 3.0e+04 : f32
      %least = arith.constant -3.0e+04 : f32
      %0 = arith.minimumf %s, %bound : f32
      %1 = arith.maximumf %0, %least : f32
      attn.yield %1 : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
