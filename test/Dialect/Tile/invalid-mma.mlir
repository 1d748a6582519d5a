// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @mma_c1(%a: tensor<64x32xbf16>, %b: !tile.shared<32x64xbf16, swizzle = 128, stages = 2>) {
  // expected-error@+1 {{expected matrices (one stage of a ring) as operands, got '!tile.shared<32x64xbf16, swizzle = 128, stages = 2>'}}
  %c = tile.mma %a, %b : tensor<64x32xbf16>, !tile.shared<32x64xbf16, swizzle = 128, stages = 2> -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c1_rank(%a: tensor<64xbf16>, %b: tensor<32x64xbf16>) {
  // expected-error@+1 {{expected matrices (one stage of a ring) as operands, got 'tensor<64xbf16>'}}
  %c = tile.mma %a, %b : tensor<64xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c2(%a: tensor<64x32xbf16>, %b: tensor<64x32xbf16>) {
  // expected-error@+1 {{expected M x K times K x N to give M x N, got 64x32 times 64x32 and 'tensor<64x32xf32>'}}
  %c = tile.mma %a, %b : tensor<64x32xbf16>, tensor<64x32xbf16> -> tensor<64x32xf32>
  return
}

// -----

func.func @mma_c3(%a: tensor<64x32xbf16>, %b: tensor<32x64xf16>) {
  // expected-error@+1 {{expected one float type of 16 bits, or float types of 8 (or f32 without layouts), for both operands, got 'bf16' and 'f16'}}
  %c = tile.mma %a, %b : tensor<64x32xbf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c3_bits(%a: tensor<64x32xf4E2M1FN>, %b: tensor<32x64xf4E2M1FN>) {
  // expected-error@+1 {{expected one float type of 16 bits, or float types of 8 (or f32 without layouts), for both operands, got 'f4E2M1FN' and 'f4E2M1FN'}}
  %c = tile.mma %a, %b : tensor<64x32xf4E2M1FN>, tensor<32x64xf4E2M1FN> -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c3_result(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>) {
  // expected-error@+1 {{expected an f32 result, got 'tensor<64x64xbf16>'}}
  %c = tile.mma %a, %b : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xbf16>
  return
}

// -----

func.func @mma_c4(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x32xf32>) {
  // expected-error@+1 {{expected an accumulator of type 'tensor<64x64xf32>', got 'tensor<64x32xf32>'}}
  %d = tile.mma %a, %b, %c : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x32xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c5(%a: tensor<64x32xbf16, #tile.acc<units = 1>>, %b: !tile.shared<32x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected lhs in layout #tile.operand_a<units = 1>, not transposed}}
  %c = tile.mma %a, %b : tensor<64x32xbf16, #tile.acc<units = 1>>, !tile.shared<32x64xbf16, swizzle = 128>
      -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @mma_c5_result(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>) {
  // expected-error@+1 {{expected layout #tile.acc of the result, got #tile.blocked<vector = 8, lanes = 8, warps = 4>}}
  %c = tile.mma %a, %b : tensor<64x32xbf16>, tensor<32x64xbf16>
      -> tensor<64x64xf32, #tile.blocked<vector = 8, lanes = 8, warps = 4>>
  return
}

// -----

func.func @mma_c6(%a: !tile.shared<64x64xbf16, swizzle = 128>, %r: tensor<64x24xbf16>) {
  // expected-error@+1 {{expected kept columns in multiples of 16 of a shared lhs of 16 bits that is not transposed, got 'tensor<64x24xbf16>' of '!tile.shared<64x64xbf16, swizzle = 128>'}}
  %c = tile.mma %a, %a kept %r {transpose_rhs} : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> kept tensor<64x24xbf16>
      -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c6_more(%a: !tile.shared<64x64xbf16, swizzle = 128>, %r: tensor<64x80xbf16>) {
  // expected-error@+1 {{expected kept columns in multiples of 16 of a shared lhs}}
  %c = tile.mma %a, %a kept %r {transpose_rhs} : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> kept tensor<64x80xbf16>
      -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c6_registers(%a: tensor<64x64xbf16>, %b: !tile.shared<64x64xbf16, swizzle = 128>, %r: tensor<64x16xbf16>) {
  // expected-error@+1 {{expected kept columns in multiples of 16 of a shared lhs}}
  %c = tile.mma %a, %b kept %r {transpose_rhs} : tensor<64x64xbf16>, !tile.shared<64x64xbf16, swizzle = 128> kept tensor<64x16xbf16>
      -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_c6_layout(%a: !tile.shared<64x64xbf16, swizzle = 128>, %r: tensor<64x16xbf16, #tile.acc<units = 1>>) {
  // expected-error@+1 {{that is not transposed, in layout #tile.operand_a, got}}
  %c = tile.mma %a, %a kept %r {transpose_rhs} : !tile.shared<64x64xbf16, swizzle = 128>, !tile.shared<64x64xbf16, swizzle = 128> kept tensor<64x16xbf16, #tile.acc<units = 1>>
      -> tensor<64x64xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @mma_c7(%a: !tile.shared<64x64xf8E4M3FN, swizzle = 64>, %b: !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>) {
  // expected-error@+1 {{expected both operands to sum over columns in one order, got '!tile.shared<64x64xf8E4M3FN, swizzle = 64>' and '!tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>'}}
  %c = tile.mma %a, %b {transpose_rhs} : !tile.shared<64x64xf8E4M3FN, swizzle = 64>, !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>
      -> tensor<64x32xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @mma_c7_columns(%a: tensor<64x32xf8E4M3FN>, %b: !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>) {
  // expected-error@+1 {{expected both operands to sum over columns in one order, got}}
  %c = tile.mma %a, %b : tensor<64x32xf8E4M3FN>, !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads> -> tensor<64x64xf32>
  return
}

// -----

// Weights in the order of memory, values in that of lanes.
func.func @mma_c5_quads(%a: tensor<64x64xf8E4M3FN, #tile.operand_a<units = 1>>, %b: !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>) {
  // expected-error@+1 {{expected lhs in layout #tile.operand_a<units = 1, quads = true>, not transposed}}
  %c = tile.mma %a, %b {transpose_rhs} : tensor<64x64xf8E4M3FN, #tile.operand_a<units = 1>>, !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>
      -> tensor<64x32xf32, #tile.acc<units = 1>>
  return
}
