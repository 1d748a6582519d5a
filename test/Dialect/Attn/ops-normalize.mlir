// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func @tensors(
func.func @tensors(%acc: tensor<?x16xf32>, %max: tensor<?xf32>, %sum: tensor<?xf32>, %o: tensor<?x16xbf16>) -> tensor<?x16xbf16> {
  // CHECK: attn.normalize %{{.*}}, %{{.*}}, %{{.*}} outs(%{{.*}}) : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x16xbf16> -> tensor<?x16xbf16>
  %r = attn.normalize %acc, %max, %sum outs(%o) : tensor<?x16xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x16xbf16> -> tensor<?x16xbf16>
  return %r : tensor<?x16xbf16>
}

// CHECK-LABEL: func @buffers(
func.func @buffers(%acc: memref<8x16xf32>, %max: memref<8xf32>, %sum: memref<8xf32>, %o: memref<8x16xf16>) {
  // CHECK: {{^ *}}attn.normalize {{.*}} outs(%{{.*}}) : memref<8x16xf32>, memref<8xf32>, memref<8xf32>, memref<8x16xf16>{{$}}
  attn.normalize %acc, %max, %sum outs(%o) : memref<8x16xf32>, memref<8xf32>, memref<8xf32>, memref<8x16xf16>
  return
}
