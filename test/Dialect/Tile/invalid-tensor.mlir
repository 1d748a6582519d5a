// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a matrix with rows in multiples of 128 up to 1024, got 64, 64}}
func.func private @tensor_c1(!tile.tensor<64x64xf32>)

// -----

// expected-error@+1 {{expected elements of 16 or 32 bits, got 'f64'}}
func.func private @tensor_c2(!tile.tensor<128x64xf64>)

// -----

// expected-error@+1 {{expected whole columns of 32 bits, at most 512, got 1026 elements of 16 bits}}
func.func private @tensor_c2_columns(!tile.tensor<128x1026xbf16>)

// -----

// expected-error@+1 {{expected a power of two of columns from 32 to 512, got 96}}
func.func private @columns_c1(!tile.columns<96>)

// -----

func.func @columns_c2() {
  // expected-error@+1 {{expected at most 0 columns on sm_90a, got 32}}
  %0 = tile.alloc_tensor : !tile.columns<32>
  return
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @columns_c2_role(%all: !tile.columns<32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  tile.specialize
  role producer warpgroups 1 registers 24 {
    // expected-error@+1 {{expected to stand outside of roles, which share the columns}}
    tile.dealloc_tensor %all : !tile.columns<32>
  }
  role consumer warpgroups 1 registers 240 {
  }
  return
}
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @alloc_tensor_c1() {
  // expected-error@+1 {{expected an offset that is a multiple of 4, got 6}}
  %0 = tile.alloc_tensor at 6 : !tile.columns<32>
  return
}
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @tensor_place_c1(%all: !tile.columns<256>) {
  // expected-error@+1 {{expected columns within the 128 that each of 2 units has of '!tile.columns<256>', got 96 from 64 on}}
  %0 = tile.tensor_place %all at 64 : !tile.columns<256> -> !tile.tensor<256x96xf32>
  return
}
}

// -----

func.func @tensor_place_c1_machine(%all: !tile.columns<256>) {
  // expected-error@+1 {{expected columns within the 0 that each of 0 units has}}
  %0 = tile.tensor_place %all at 0 : !tile.columns<256> -> !tile.tensor<128x64xf32>
  return
}

// -----

#acc = #tile.acc<units = 2>
func.func @tensor_access_c1(%s: !tile.tensor<128x64xf32>) {
  // expected-error@+1 {{expected the shape and element type of '!tile.tensor<128x64xf32>' in the layout of sums in tensor memory}}
  %0 = tile.load_tensor %s : !tile.tensor<128x64xf32> -> tensor<128x64xf32, #acc>
  return
}

// -----

#acc = #tile.acc<units = 1, product = "tcgen05">
func.func @tensor_access_c1_shape(%s: !tile.tensor<128x64xf32>, %t: tensor<128x32xf32, #acc>) {
  // expected-error@+1 {{expected the shape and element type of '!tile.tensor<128x64xf32>'}}
  tile.store_tensor %t to %s : tensor<128x32xf32, #acc>, !tile.tensor<128x64xf32>
  return
}

// -----

#acc = #tile.acc<units = 1, product = "tcgen05">
func.func @scale_tensor_c1(%s: !tile.tensor<128x64xbf16>, %f: tensor<128xf32, #tile.row<#acc>>) {
  // expected-error@+1 {{expected f32 for each row of a place of f32}}
  tile.scale_tensor %s by %f : !tile.tensor<128x64xbf16>, tensor<128xf32, #tile.row<#acc>>
  return
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @mma_tensor_c1(%p: !tile.tensor<128x64xbf16>, %v: !tile.shared<64x128xbf16, swizzle = 128, stages = 2>, %o: !tile.tensor<128x128xf32>, %b: !tile.barrier<1>) {
  // expected-error@+1 {{expected matrices (one stage of a ring), and no transposed lhs in tensor memory, got '!tile.shared<64x128xbf16, swizzle = 128, stages = 2>'}}
  tile.mma_tensor %p, %v to %o signal %b : !tile.tensor<128x64xbf16>, !tile.shared<64x128xbf16, swizzle = 128, stages = 2>, !tile.tensor<128x128xf32>, !tile.barrier<1>
  return
}
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @mma_tensor_c1_lhs(%p: !tile.tensor<128x128xbf16>, %v: !tile.shared<128x128xbf16, swizzle = 128>, %o: !tile.tensor<128x128xf32>, %b: !tile.barrier<1>) {
  // expected-error@+1 {{no transposed lhs in tensor memory, got '!tile.tensor<128x128xbf16>'}}
  tile.mma_tensor %p, %v to %o signal %b {transpose_lhs} : !tile.tensor<128x128xbf16>, !tile.shared<128x128xbf16, swizzle = 128>, !tile.tensor<128x128xf32>, !tile.barrier<1>
  return
}
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @mma_tensor_c2(%p: !tile.tensor<128x64xbf16>, %v: !tile.shared<32x128xbf16, swizzle = 128>, %o: !tile.tensor<128x128xf32>, %b: !tile.barrier<1>) {
  // expected-error@+1 {{expected M x K times K x N to give M x N, with K in multiples of 16, got 128x64 times 32x128}}
  tile.mma_tensor %p, %v to %o signal %b : !tile.tensor<128x64xbf16>, !tile.shared<32x128xbf16, swizzle = 128>, !tile.tensor<128x128xf32>, !tile.barrier<1>
  return
}
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @mma_tensor_c3(%p: !tile.tensor<128x64xbf16>, %v: !tile.shared<64x128xf16, swizzle = 128>, %o: !tile.tensor<128x128xf32>, %b: !tile.barrier<1>) {
  // expected-error@+1 {{expected one float type of 16 bits for both operands}}
  tile.mma_tensor %p, %v to %o signal %b : !tile.tensor<128x64xbf16>, !tile.shared<64x128xf16, swizzle = 128>, !tile.tensor<128x128xf32>, !tile.barrier<1>
  return
}
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @mma_tensor_c3_columns(%p: !tile.tensor<128x64xbf16>, %v: !tile.shared<64x20xbf16, swizzle = 32>, %o: !tile.tensor<128x20xf32>, %b: !tile.barrier<1>) {
  // expected-error@+1 {{a sum of f32 with columns in multiples of 8}}
  tile.mma_tensor %p, %v to %o signal %b : !tile.tensor<128x64xbf16>, !tile.shared<64x20xbf16, swizzle = 32>, !tile.tensor<128x20xf32>, !tile.barrier<1>
  return
}
}

// -----

func.func @mma_tensor_c4(%p: !tile.tensor<128x64xbf16>, %v: !tile.shared<64x128xbf16, swizzle = 128>, %o: !tile.tensor<128x128xf32>, %b: !tile.barrier<1>) {
  // expected-error@+1 {{expected a machine with tensor memory, got sm_90a}}
  tile.mma_tensor %p, %v to %o signal %b : !tile.tensor<128x64xbf16>, !tile.shared<64x128xbf16, swizzle = 128>, !tile.tensor<128x128xf32>, !tile.barrier<1>
  return
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @mma_tensor_c4_slot(%p: !tile.tensor<128x64xbf16>, %v: !tile.shared<64x128xbf16, swizzle = 128>, %o: !tile.tensor<128x128xf32>, %b: !tile.barrier<2>) {
  // expected-error@+1 {{expected a slot of 2 stages, got 1}}
  tile.mma_tensor %p, %v to %o signal %b : !tile.tensor<128x64xbf16>, !tile.shared<64x128xbf16, swizzle = 128>, !tile.tensor<128x128xf32>, !tile.barrier<2>
  return
}
}

// -----

module attributes {plan.target = #plan.target<"sm_100a">} {
func.func @unit_slot_c1() attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  // expected-error@+1 {{expected a barrier for each of 2 units of a role that is not elected, got 1}}
  %0 = tile.unit_slot : !tile.slot<1>
  return
}
}
