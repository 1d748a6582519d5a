// The whole way to a GPU by one name.
// RUN: attn-opt %s --pass-pipeline='builtin.module(attn-to-thread{block-n=64})' | FileCheck %s
// RUN: attn-opt %s --attn-to-thread | FileCheck %s

// CHECK: llvm.func @attention
// CHECK-SAME: tile.plan
// CHECK-NOT: tile.mma
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
