// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @status(
func.func @status(%empty: tensor<1xi32>, %ids: tensor<?x?xi32>, %rows: index, %keys: index, %b: index, %h: index, %m: index,
                  %n: index) -> tensor<1xi32> {
  // CHECK: attn.tile_status %{{.*}} rows, %{{.*}} keys size 128 at(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) outs(%{{.*}})
  // CHECK-NEXT: mask(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK: : tensor<1xi32> -> tensor<1xi32>
  %status = attn.tile_status %rows rows, %keys keys size 128 at(%b, %h, %m, %n) outs(%empty)
    mask(%bb, %hh, %mm, %nn) {
      %row = tensor.extract %ids[%bb, %mm] : tensor<?x?xi32>
      %key = tensor.extract %ids[%bb, %nn] : tensor<?x?xi32>
      %same = arith.cmpi eq, %row, %key : i32
      attn.yield %same : i1
    }
    : tensor<1xi32> -> tensor<1xi32>
  return %status : tensor<1xi32>
}

// CHECK-LABEL: func @lists(
func.func @lists(%status: tensor<?xi32>, %tiles: tensor<?xi32>, %counts: tensor<2xi32>) -> (tensor<?xi32>, tensor<2xi32>) {
  // CHECK: attn.list_tiles %{{.*}} size 128 outs(%{{.*}}, %{{.*}}) : tensor<?xi32>, tensor<?xi32>, tensor<2xi32> -> tensor<?xi32>, tensor<2xi32>
  %lists:2 = attn.list_tiles %status size 128 outs(%tiles, %counts) : tensor<?xi32>, tensor<?xi32>, tensor<2xi32> -> tensor<?xi32>, tensor<2xi32>
  return %lists#0, %lists#1 : tensor<?xi32>, tensor<2xi32>
}
