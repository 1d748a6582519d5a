// RUN: not attn-opt %s --attn-split-lengths=way=medium 2>&1 | FileCheck %s

// CHECK: error: expected way=short, long, few, narrow or auto, got 'medium'
func.func @attention(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  return %q : tensor<?x?x?x64xbf16>
}
