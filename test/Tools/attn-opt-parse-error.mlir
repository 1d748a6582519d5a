// RUN: not attn-opt %s 2>&1 | FileCheck %s

// CHECK: attn-opt-parse-error.mlir:[[@LINE+2]]:3: error: custom op 'attn.atention' is unknown
func.func @typo() {
  attn.atention
  return
}
