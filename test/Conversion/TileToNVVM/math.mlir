// Functions with an instruction become it; the others are written out, and nothing is left that LLVM cannot select.
// RUN: attn-opt %s -split-input-file --attn-to-thread | FileCheck %s

// CHECK-LABEL: llvm.func @tanh
// The exact form: one exponential and one reciprocal.
// CHECK-NOT: tanh.approx
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: nvvm.rcp.approx.ftz.f
func.func @tanh(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %r = math.tanh %s : f32
      attn.yield %r : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// CHECK-LABEL: llvm.func @approximate
// CHECK: tanh.approx.f32
func.func @approximate(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %r = math.tanh %s fastmath<afn> : f32
      attn.yield %r : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// CHECK-LABEL: llvm.func @expanded
// CHECK-NOT: {{math\.|llvm.intr.(sin|pow|log|exp)}}
func.func @expanded(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %0 = math.sin %s : f32
      %1 = math.erf %0 : f32
      %2 = math.powf %1, %s : f32
      %3 = math.log1p %2 : f32
      %4 = math.atan2 %3, %s : f32
      %5 = math.log10 %4 : f32
      attn.yield %5 : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// A score may round on its way: only the weights of the next step wait for the product in flight.
// CHECK-LABEL: llvm.func @rounded
func.func @rounded(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %0 = arith.truncf %s : f32 to bf16
      %1 = arith.extf %0 : bf16 to f32
      %2 = math.tanh %1 : f32
      attn.yield %2 : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
