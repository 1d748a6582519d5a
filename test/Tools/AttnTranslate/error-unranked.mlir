// RUN: not attn-translate %s --until=asm 2>&1 | FileCheck %s

// CHECK: error: {{.*}}expected tensors of known rank, got 'tensor<*xf32>'
func.func @f(%k: tensor<*xf32>) {
  return
}
