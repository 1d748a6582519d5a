// RUN: attn-opt %s --emit-ptx --verify-diagnostics

// expected-error@below {{expected a module that LLVM IR can say, got could not find LLVM intrinsic: "llvm.attn.nothing"}}
module {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.call_intrinsic "llvm.attn.nothing"() : () -> ()
    llvm.return
  }
}
