// RUN: attn-opt %s --convert-attn-to-vector=lanes=16 | FileCheck %s --check-prefixes=CHECK,L16
// RUN: attn-opt %s --convert-attn-to-vector=lanes=8 | FileCheck %s --check-prefixes=CHECK,L8
// RUN: attn-opt %s --convert-attn-to-vector=lanes=4 | FileCheck %s --check-prefixes=CHECK,L4

// Dv = 20: the last register of a row of the value has 4 of 16 or 8 columns, and all of 4.
// CHECK-LABEL: func @dv20(
// CHECK-SAME:    %[[V:[a-z0-9]+]]: memref<48x20xf32>
func.func @dv20(%q: memref<48x48xf32>, %k: memref<48x48xf32>, %v: memref<48x20xf32>,
                %acc: memref<48x20xf32>, %max: memref<48xf32>, %sum: memref<48xf32>) {
  %scale = arith.constant 0.18 : f32
  // L16-DAG: arith.constant dense<[true, true, true, true, false, false, false, false, false, false, false, false, false, false, false, false]>
  // L16: vector.maskedload %[[V]]{{.*}} vector<16xf32>
  // L8-DAG: arith.constant dense<[true, true, true, true, false, false, false, false]>
  // L8: vector.maskedload %[[V]]{{.*}} vector<8xf32>
  // L4-NOT: vector.maskedload %[[V]]
  // L4: vector.load %[[V]]{{.*}} vector<4xf32>
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<48x48xf32>, memref<48x48xf32>, memref<48x20xf32>, memref<48x20xf32>, memref<48xf32>, memref<48xf32>
  return
}
