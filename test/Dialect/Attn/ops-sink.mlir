// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// A sink is one number for each head, or for each row.
// CHECK-LABEL: func.func @sinks(
// CHECK: attn.attention {{.*}} sink(%{{.*}} : tensor<?xf32>)
// CHECK: attn.attention {{.*}} sink(%{{.*}} : tensor<?x?xf32>)
func.func @sinks(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %head: tensor<?xf32>, %row: tensor<?x?xf32>) {
  %0 = attn.attention %q, %k, %k sink(%head : tensor<?xf32>)
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  %1 = attn.attention %q, %k, %k sink(%row : tensor<?x?xf32>)
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return
}

// CHECK-LABEL: func.func @normalize(
// CHECK: attn.normalize {{.*}} sink(%{{[a-z0-9]*}}) outs
// CHECK: attn.normalize {{.*}} sink(%{{[a-z0-9]*}} : tensor<8xf32>) outs
func.func @normalize(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>, %one: f32, %each: tensor<8xf32>, %o: tensor<8x16xf16>) {
  %0 = attn.normalize %acc, %max, %sum sink(%one) outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  %1 = attn.normalize %acc, %max, %sum sink(%each : tensor<8xf32>) outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return
}

// CHECK-LABEL: func.func @pack(
// CHECK: attn.pack_sink %{{.*}} of %{{.*}} for %{{.*}} by 4
func.func @pack(%s: tensor<8xf32>, %q: tensor<2x8x3x64xbf16>, %k: tensor<2x2x9x64xbf16>) {
  %0 = attn.pack_sink %s of %q for %k by 4 : tensor<8xf32>, tensor<2x8x3x64xbf16>, tensor<2x2x9x64xbf16> -> tensor<2x12xf32>
  return
}
