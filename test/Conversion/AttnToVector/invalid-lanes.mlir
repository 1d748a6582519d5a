// RUN: not attn-opt %s --convert-attn-to-vector=lanes=5 2>&1 | FileCheck %s

// CHECK: expected 16, 8 or 4 lanes, got 5
func.func @f() {
  return
}
