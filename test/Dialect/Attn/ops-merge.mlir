// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @tensors(
func.func @tensors(%p: tensor<4x?x?x?x16xf32>, %l: tensor<4x?x?x?xf32>, %o: tensor<?x?x?x16xbf16>) -> tensor<?x?x?x16xbf16> {
  // CHECK: attn.merge %{{.*}}, %{{.*}} outs(%{{.*}}) : tensor<4x?x?x?x16xf32>, tensor<4x?x?x?xf32>, tensor<?x?x?x16xbf16> -> tensor<?x?x?x16xbf16>
  %r = attn.merge %p, %l outs(%o) : tensor<4x?x?x?x16xf32>, tensor<4x?x?x?xf32>, tensor<?x?x?x16xbf16> -> tensor<?x?x?x16xbf16>
  return %r : tensor<?x?x?x16xbf16>
}

// CHECK-LABEL: func @buffers(
func.func @buffers(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>, %lse: memref<8xf32>) {
  // CHECK: {{^ *}}attn.merge {{.*}} outs(%{{.*}}, %{{.*}}) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>, memref<8xf32>{{$}}
  attn.merge %p, %l outs(%o, %lse) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>, memref<8xf32>
  return
}

// CHECK-LABEL: func @low(
func.func @low(%p: memref<4x8x16xf32>, %l: memref<4x8xf32>, %o: memref<8x16xf32>, %lse: memref<8xf32>) {
  // CHECK: {{^ *}}attn.merge %{{.*}}, %{{.*}} partial_low(%{{.*}} : memref<4x8xf32>) outs(%{{.*}}, %{{.*}}, %{{.*}}) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>, memref<8xf32>, memref<8xf32>{{$}}
  attn.merge %p, %l partial_low(%l : memref<4x8xf32>) outs(%o, %lse, %lse) : memref<4x8x16xf32>, memref<4x8xf32>, memref<8x16xf32>, memref<8xf32>, memref<8xf32>
  return
}
