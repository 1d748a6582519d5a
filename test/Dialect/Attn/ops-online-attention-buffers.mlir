// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// On buffers the state is updated in place and there are no results; keys may be strided.
// CHECK-LABEL: func @online(
func.func @online(%q: memref<8x64xf16>, %k: memref<?x64xf16, strided<[?, 1], offset: ?>>, %v: memref<?x16xf16, strided<[?, 1], offset: ?>>, %scale: f32,
                  %acc: memref<8x16xf32>, %max: memref<8xf32>, %sum: memref<8xf32>) {
  // CHECK: {{^ *}}attn.online_attention {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}}) :
  // CHECK-SAME: memref<8x16xf32>, memref<8xf32>, memref<8xf32>{{$}}
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<8x64xf16>, memref<?x64xf16, strided<[?, 1], offset: ?>>, memref<?x16xf16, strided<[?, 1], offset: ?>>, memref<8x16xf32>, memref<8xf32>, memref<8xf32>
  return
}
