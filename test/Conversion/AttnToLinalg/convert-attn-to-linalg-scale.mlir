// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// 1 / sqrt(16)
// CHECK-LABEL: func @default_scale(
func.func @default_scale(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: arith.constant 2.500000e-01 : f32
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func @user_scale(
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: f32)
func.func @user_scale(%q: !t, %k: !t, %v: !t, %scale: f32) -> !t {
  // CHECK: linalg.generic
  // CHECK: linalg.generic
  // CHECK: arith.mulf %{{.*}}, %[[SCALE]]
  %o = attn.attention %q, %k, %v scale(%scale) : !t, !t, !t -> !t
  return %o : !t
}
