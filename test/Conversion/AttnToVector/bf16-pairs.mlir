// RUN: attn-opt %s --convert-attn-to-vector="lanes=16 bf16-dot=true" --split-input-file | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-vector="lanes=16" --split-input-file | FileCheck %s --check-prefix=WIDEN

// Pairs along d lie in memory as the instruction wants them; pairs of keys are interleaved once per tile.
// CHECK-LABEL: func @pairs(
// CHECK-SAME:    %{{.*}}: memref<32x64xbf16>, %[[K:.*]]: memref<64x64xbf16>, %[[V:.*]]: memref<64x32xbf16>
// WIDEN-LABEL: func @pairs(
// WIDEN-SAME:    %{{.*}}: memref<32x64xbf16>, %[[K:.*]]: memref<64x64xbf16>, %[[V:.*]]: memref<64x32xbf16>
func.func @pairs(%q: memref<32x64xbf16>, %k: memref<64x64xbf16>, %v: memref<64x32xbf16>,
                 %acc: memref<32x32xf32>, %max: memref<32xf32>, %sum: memref<32xf32>) {
  %scale = arith.constant 0.18 : f32
  // CHECK: vector.load %[[K]]{{.*}} vector<2xbf16>
  // CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
  // CHECK: %[[EVEN:.*]] = vector.load %[[V]]{{.*}} vector<16xbf16>
  // CHECK: %[[ODD:.*]] = vector.load %[[V]]{{.*}} vector<16xbf16>
  // CHECK: vector.interleave %[[EVEN]], %[[ODD]] : vector<16xbf16> -> vector<32xbf16>
  // CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
  // CHECK: vector.shuffle {{.*}} [0, 16, 1, 17,
  // CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"

  // Without the instruction keys and values become f32, once per tile.
  // WIDEN: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
  // WIDEN: arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
  // WIDEN-NOT: bf16
  // WIDEN: vector.fma
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<32x64xbf16>, memref<64x64xbf16>, memref<64x32xbf16>, memref<32x32xf32>, memref<32xf32>, memref<32xf32>
  return
}

// -----

// The last of an odd D would pair with memory that may not be there.
// CHECK-LABEL: func @odd_depth
// CHECK-NOT: dpbf16ps
// CHECK: vector.fma
func.func @odd_depth(%q: memref<32x33xbf16>, %k: memref<64x33xbf16>, %v: memref<64x32xbf16>,
                     %acc: memref<32x32xf32>, %max: memref<32xf32>, %sum: memref<32xf32>) {
  %scale = arith.constant 0.18 : f32
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<32x33xbf16>, memref<64x33xbf16>, memref<64x32xbf16>, memref<32x32xf32>, memref<32xf32>, memref<32xf32>
  return
}

// -----

// The partner of the last of an odd number of keys: score -inf, value 0.
// CHECK-LABEL: func @odd_keys
func.func @odd_keys(%q: memref<16x64xbf16>, %k: memref<7x64xbf16>, %v: memref<7x16xbf16>,
                    %acc: memref<16x16xf32>, %max: memref<16xf32>, %sum: memref<16xf32>) {
  %scale = arith.constant 0.18 : f32
  // CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xbf16>
  // CHECK-NEXT: vector.interleave %{{.*}}, %[[ZERO]] : vector<16xbf16>
  // CHECK: %[[NONE:.*]] = arith.constant dense<0xFF800000> : vector<16xf32>
  // CHECK: vector.store %[[NONE]], %{{.*}} : memref<8x16xf32>, vector<16xf32>
  attn.online_attention %q, %k, %v scale(%scale) outs(%acc, %max, %sum)
    : memref<16x64xbf16>, memref<7x64xbf16>, memref<7x16xbf16>, memref<16x16xf32>, memref<16xf32>, memref<16xf32>
  return
}
