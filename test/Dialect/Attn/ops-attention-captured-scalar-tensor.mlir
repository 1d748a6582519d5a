// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// A tensor of rank 0 is a scalar that lives in memory.
// CHECK-LABEL: func @temperature(
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<f32>)
func.func @temperature(%q: !t, %k: !t, %v: !t, %temperature: tensor<f32>) -> !t {
  // CHECK: tensor.extract %[[T]][] : tensor<f32>
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %t = tensor.extract %temperature[] : tensor<f32>
      %scaled = arith.mulf %s, %t : f32
      attn.yield %scaled : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
