// RUN: attn-opt %s --attn-expand-variants --attn-tile-to-grid --attn-online-softmax --attn-tile-kv-loop | FileCheck %s

// A function without a body has nothing to compile.
// CHECK: func.func private @elsewhere(tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>
func.func private @elsewhere(tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>
