// RUN: attn-opt %s --tile-specialize-warps --split-input-file -verify-diagnostics

// expected-error@below {{has no room for a producer: expected 1 to 8 warpgroups, got 9}}
func.func @warpgroups(%q: memref<?x64xbf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 8, grid = []>} {
  %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  tile.copy %q[%i, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  %read = tile.mma %place, %place : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  return
}

// -----

func.func @room(%q: memref<?x64xbf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  tile.copy %q[%i, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  // expected-error@below {{'tile.sync' op does not belong to level 'placed': roles are made here}}
  tile.sync
  %read = tile.mma %place, %place : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  return
}

// -----

func.func @destination(%q: memref<?x64xbf16>, %i: index, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  scf.for %j = %i to %n step %i {
    %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
    // expected-error@below {{expected a tile.alloc_shared of the kernel as destination}}
    tile.copy %q[%j, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
    %read = tile.mma %place, %place : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  }
  return
}

// -----

func.func @ring(%q: memref<?x16xbf16>, %i: index, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@below {{cannot be a ring: expected stages of a multiple of 1024 bytes, got 256}}
  %place = tile.alloc_shared : !tile.shared<8x16xbf16, swizzle = 32>
  %left = tile.alloc_shared : !tile.shared<64x16xbf16, swizzle = 32>
  scf.for %j = %i to %n step %i {
    tile.copy %q[%j, %i] to %place : memref<?x16xbf16>, !tile.shared<8x16xbf16, swizzle = 32>
    %read = tile.mma %left, %place {transpose_rhs} : !tile.shared<64x16xbf16, swizzle = 32>, !tile.shared<8x16xbf16, swizzle = 32> -> tensor<64x8xf32>
  }
  return
}

// -----

func.func @while(%q: memref<?x64xbf16>, %i: index, %live: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // expected-error@below {{'scf.while' op expected scf.for and scf.if around tiles}}
  scf.while : () -> () {
    scf.condition(%live)
  } do {
    tile.copy %q[%i, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
    scf.yield
  }
  %read = tile.mma %place, %place : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  return
}

// -----

func.func @scalar(%q: memref<?x64xbf16>, %i: index) -> () attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  tile.copy %q[%i, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  %t = tile.load %q[%i, %i] : memref<?x64xbf16> -> tensor<64x64xbf16, #tile.acc<warpgroups = 1>>
  // expected-error@below {{expected scalars that do not come from tiles}}
  %e = tensor.extract %t[%i, %i] : tensor<64x64xbf16, #tile.acc<warpgroups = 1>>
  %read = tile.mma %place, %place : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32>
  return
}

// -----

func.func @order(%q: memref<?x64xbf16>, %i: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %place = tile.alloc_shared : !tile.shared<64x64xbf16, swizzle = 128>
  // expected-error@below {{and copies before what reads them}}
  %s = tile.mma %place, %place : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> -> tensor<64x64xf32, #tile.acc<warpgroups = 1>>
  tile.copy %q[%i, %i] to %place : memref<?x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  return
}
