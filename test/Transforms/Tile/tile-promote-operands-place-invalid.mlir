// RUN: attn-opt %s --tile-promote-operands --split-input-file -verify-diagnostics

func.func @rows(%q: memref<?x64xbf16>, %k: memref<?x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %a = tile.load %q[%c0, %c0] : memref<?x64xbf16> -> tensor<128x64xbf16>
  // expected-error@below {{has no place: expected one dimension, or two, the first a multiple of 8, got 97, 64}}
  %b = tile.load %k[%c0, %c0] : memref<?x64xbf16> -> tensor<97x64xbf16>
  %s = tile.mma %a, %b {transpose_rhs} : tensor<128x64xbf16>, tensor<97x64xbf16> -> tensor<128x97xf32>
  return
}

// -----

// 17 columns of a load become 32, of which the last read as zeros; those of a tile that threads computed stay 17.
func.func @steps(%a: f32, %k: memref<?x17xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %p = tile.broadcast %a : f32 -> tensor<128x17xf32>
  %h = arith.truncf %p : tensor<128x17xf32> to tensor<128x17xbf16>
  %b = tile.load %k[%c0, %c0] : memref<?x17xbf16> -> tensor<96x17xbf16>
  // expected-error@below {{expected K in steps of 32 bytes, or two operands loaded with K as their columns, got K of 17, of which an operand takes 32}}
  %s = tile.mma %h, %b {transpose_rhs} : tensor<128x17xbf16>, tensor<96x17xbf16> -> tensor<128x96xf32>
  return
}

// -----

func.func @columns(%numbers: memref<?x?xf32>, %o: memref<?x536870911xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  // expected-error@below {{has no place: }}
  %t = tile.load_columns %numbers[%c0, %c0] : memref<?x?xf32> -> tensor<64x536870911xf32>
  tile.store %t to %o[%c0, %c0] : tensor<64x536870911xf32>, memref<?x536870911xf32>
  return
}

// -----

func.func @endless(%q: memref<?x9223372036854775807xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %a = arith.constant dense<0.0> : tensor<64x9223372036854775807xbf16>
  // expected-error@below {{has no place: }}
  %b = tile.load %q[%c0, %c0] : memref<?x9223372036854775807xbf16> -> tensor<40x9223372036854775807xbf16>
  %s = tile.mma %a, %b {transpose_rhs} : tensor<64x9223372036854775807xbf16>, tensor<40x9223372036854775807xbf16> -> tensor<64x40xf32>
  return
}
