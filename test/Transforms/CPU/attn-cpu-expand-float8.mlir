// RUN: attn-opt %s --attn-cpu-expand-float8 | FileCheck %s

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%x: f8E4M3FN) -> f64 {
  // CHECK: %[[BYTE:.*]] = arith.bitcast %{{.*}} : f8E4M3FN to i8
  // CHECK: %[[WORD:.*]] = arith.extui %[[BYTE]] : i8 to i32
  // CHECK: %[[MAGNITUDE:.*]] = arith.andi %[[WORD]]
  // CHECK: %[[FACTOR:.*]] = arith.constant 1.329228E+36 : f32
  // CHECK: arith.mulf %{{.*}}, %[[FACTOR]] : f32
  // CHECK: %[[IS:.*]] = arith.cmpi uge, %[[MAGNITUDE]]
  // CHECK: %[[NUMBER:.*]] = arith.select %[[IS]]
  // CHECK: arith.extf %[[NUMBER]] : f32 to f64
  // CHECK-NOT: f8E4M3FN to f
  %y = arith.extf %x : f8E4M3FN to f64
  return %y : f64
}

// CHECK-LABEL: func.func @vector(
func.func @vector(%x: vector<8xf8E5M2>) -> vector<8xf32> {
  // CHECK: arith.bitcast %{{.*}} : vector<8xf8E5M2> to vector<8xi8>
  // CHECK-NOT: arith.extf
  %y = arith.extf %x : vector<8xf8E5M2> to vector<8xf32>
  return %y : vector<8xf32>
}
