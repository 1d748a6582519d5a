// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @online(
func.func @online(%q: tensor<?x64xbf16>, %k: tensor<32x64xbf16>, %v: tensor<32x16xbf16>, %scale: f32, %i: index,
                  %acc: tensor<?x16xf32>, %max: tensor<?xf32>, %sum: tensor<?xf32>) -> (tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>) {
  // CHECK: %[[R:.*]]:3 = attn.online_attention %{{.*}}, %{{.*}}, %{{.*}} scale(%{{.*}}) at(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}})
  // CHECK-SAME: : tensor<?x64xbf16>, tensor<32x64xbf16>, tensor<32x16xbf16>, tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
  // CHECK-SAME: -> tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
  // CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
  %r:3 = attn.online_attention %q, %k, %v scale(%scale) at(%i, %i, %i, %i) outs(%acc, %max, %sum)
    : tensor<?x64xbf16>, tensor<32x64xbf16>, tensor<32x16xbf16>, tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
    -> tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
  return %r#0, %r#1, %r#2 : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
}
