// RUN: attn-opt %s --canonicalize | FileCheck %s

// The op takes the more static types, whether or not it has regions; its results are cast back.
// CHECK-LABEL: func @fold_casts(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<8x64xf16>
func.func @fold_casts(%q: tensor<8x64xf16>, %k: tensor<4x64xf16>, %v: tensor<4x16xf16>, %scale: f32,
                      %acc: tensor<8x16xf32>, %max: tensor<8xf32>, %sum: tensor<8xf32>) -> tensor<?x16xf32> {
  // CHECK: %[[R:.*]]:3 = attn.online_attention %[[Q]], {{.*}} : tensor<8x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  // CHECK-SAME: -> tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
  // CHECK: %[[CAST:.*]] = tensor.cast %[[R]]#0 : tensor<8x16xf32> to tensor<?x16xf32>
  // CHECK: return %[[CAST]]
  %qd = tensor.cast %q : tensor<8x64xf16> to tensor<?x64xf16>
  %ad = tensor.cast %acc : tensor<8x16xf32> to tensor<?x16xf32>
  %md = tensor.cast %max : tensor<8xf32> to tensor<?xf32>
  %sd = tensor.cast %sum : tensor<8xf32> to tensor<?xf32>
  %r:3 = attn.online_attention %qd, %k, %v scale(%scale) outs(%ad, %md, %sd)
    : tensor<?x64xf16>, tensor<4x64xf16>, tensor<4x16xf16>, tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
    -> tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>
  return %r#0 : tensor<?x16xf32>
}

// The op keeps its attributes.
// CHECK-LABEL: func @list_tiles
// CHECK: attn.list_tiles %{{.*}} size 128 outs({{.*}}) : tensor<8xi32>, tensor<8xi32>, tensor<2xi32> -> tensor<8xi32>, tensor<2xi32>
func.func @list_tiles(%status: tensor<8xi32>, %tiles: tensor<8xi32>, %counts: tensor<2xi32>) -> (tensor<?xi32>, tensor<2xi32>) {
  %s = tensor.cast %status : tensor<8xi32> to tensor<?xi32>
  %t = tensor.cast %tiles : tensor<8xi32> to tensor<?xi32>
  %l:2 = attn.list_tiles %s size 128 outs(%t, %counts) : tensor<?xi32>, tensor<?xi32>, tensor<2xi32> -> tensor<?xi32>, tensor<2xi32>
  return %l#0, %l#1 : tensor<?xi32>, tensor<2xi32>
}
