// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @sink_lse(
func.func @sink_lse(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %sink: f32, %o: tensor<8x16xf16>, %lse: tensor<8xf32>) -> (tensor<8x16xf16>, tensor<8xf32>) {
  // CHECK: attn.normalize %{{.*}}, %{{.*}}, %{{.*}} sink(%{{.*}}) outs(%{{.*}}, %{{.*}}) : {{.*}}, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  %r:2 = attn.normalize %acc, %max, %sum sink(%sink) outs(%o, %lse) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16>, tensor<8xf32> -> tensor<8x16xf16>, tensor<8xf32>
  return %r#0, %r#1 : tensor<8x16xf16>, tensor<8xf32>
}
