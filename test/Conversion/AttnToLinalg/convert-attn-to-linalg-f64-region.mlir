// RUN: attn-opt %s --convert-attn-to-linalg=f64 --canonicalize | FileCheck %s

!t = tensor<?x?x?x16xf32>

// What a region does in f64 already stays so; what is a matter of bits stays f32.
// CHECK-LABEL: func @mixed(
func.func @mixed(%q: !t, %k: !t, %table: tensor<?xf64>) -> !t {
  // CHECK: %[[X:.*]] = tensor.extract %{{.*}} : tensor<?xf64>
  // CHECK-NOT: arith.extf
  // CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[X]] : f64
  // CHECK: %[[F32:.*]] = arith.truncf %[[SUM]] : f64 to f32
  // CHECK: arith.bitcast %[[F32]] : f32 to i32
  %o = attn.attention %q, %k, %k
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %table[%n] : tensor<?xf64>
      %wide = arith.extf %s : f32 to f64
      %sum = arith.addf %wide, %x : f64
      %t = arith.truncf %sum : f64 to f32
      %bits = arith.bitcast %t : f32 to i32
      %one = arith.constant 1 : i32
      %odd = arith.ori %bits, %one : i32
      %r = arith.bitcast %odd : i32 to f32
      attn.yield %r : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
