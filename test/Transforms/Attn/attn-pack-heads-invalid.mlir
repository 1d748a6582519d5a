// RUN: not attn-opt %s --attn-pack-heads=slots=3 2>&1 | FileCheck %s

// CHECK: error: expected slots of 0, 2, 4, 8, 16, 32 or 64, got 3
func.func @attention(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  return %q : tensor<?x?x?x64xbf16>
}
