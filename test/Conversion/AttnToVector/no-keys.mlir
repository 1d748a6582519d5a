// RUN: attn-opt %s --convert-attn-to-vector | FileCheck %s

// A step without keys, or without rows, leaves the state as it is.
// CHECK-LABEL: func.func @no_keys
// CHECK-NOT:   scf.for
// CHECK:       return
func.func @no_keys(%q: memref<32x64xbf16>, %k: memref<0x64xbf16>, %acc: memref<32x64xf32>, %max: memref<32xf32>, %sum: memref<32xf32>) {
  %scale = arith.constant 0.18 : f32
  attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : memref<32x64xbf16>, memref<0x64xbf16>, memref<0x64xbf16>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>
  return
}

// CHECK-LABEL: func.func @no_rows
// CHECK-NOT:   scf.for
// CHECK:       return
func.func @no_rows(%q: memref<0x64xbf16>, %k: memref<32x64xbf16>, %acc: memref<0x64xf32>, %max: memref<0xf32>, %sum: memref<0xf32>) {
  %scale = arith.constant 0.18 : f32
  attn.online_attention %q, %k, %k scale(%scale) outs(%acc, %max, %sum)
    : memref<0x64xbf16>, memref<32x64xbf16>, memref<32x64xbf16>, memref<0x64xf32>, memref<0xf32>, memref<0xf32>
  return
}
