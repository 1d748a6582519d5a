// LLVM would end the process: the error comes first and says what can be done.
// RUN: attn-opt %s --attn-to-thread -split-input-file -verify-diagnostics

func.func @wide(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %0 = arith.extf %s : f32 to f64
      // expected-error@below {{expected a function of f32 that can be computed on the device cuda, got 'f64'; convert to f32 first, or write it with exp, log and arithmetic}}
      %1 = math.exp %0 : f64
      %2 = arith.truncf %1 : f64 to f32
      attn.yield %2 : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// Neither LLVM's nor upstream's patterns know this one.
func.func @predicate(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      // expected-error@below {{expected a function of f32 that can be computed on the device cuda, got 'i1'}}
      %0 = math.isinf %s : f32
      %1 = arith.uitofp %0 : i1 to f32
      attn.yield %1 : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
