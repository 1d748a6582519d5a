// RUN: not attn-opt %s --attn-make-ways=way=medium 2>&1 | FileCheck %s --check-prefix=WAY
// RUN: not attn-opt %s --attn-make-ways=slots=3 2>&1 | FileCheck %s --check-prefix=SLOTS

// WAY: error: expected way=auto, lengths, short, long, few, narrow or groups, got 'medium'
// SLOTS: error: expected slots of 0, 2, 4, 8, 16, 32 or 64, got 3
func.func @attention(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  return %q : tensor<?x?x?x64xbf16>
}
