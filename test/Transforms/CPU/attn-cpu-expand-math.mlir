// RUN: attn-opt %s --attn-cpu-expand-math | FileCheck %s

// A power of two becomes a polynomial, of a number or of a vector.
// CHECK-LABEL: func.func @vector
func.func @vector(%x: vector<16xf32>, %y: f32) -> (vector<16xf32>, f32) {
  // CHECK-NOT: math.exp2
  // CHECK: math.fma {{.*}} : vector<16xf32>
  %a = math.exp2 %x : vector<16xf32>
  // CHECK: math.fma {{.*}} : f32
  %b = math.exp2 %y : f32
  return %a, %b : vector<16xf32>, f32
}
