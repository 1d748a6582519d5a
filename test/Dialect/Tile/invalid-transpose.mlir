// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @transpose_c1(%a: !tile.shared<64x32xbf16, swizzle = 64>, %b: !tile.shared<32x64xbf16, swizzle = 128>) {
  // expected-error@+1 {{expected a stage of 8-bit elements with rows in multiples of 32 and columns of 16, and one with rows as columns in quads, got '!tile.shared<64x32xbf16, swizzle = 64>' and '!tile.shared<32x64xbf16, swizzle = 128>'}}
  tile.transpose %a to %b : !tile.shared<64x32xbf16, swizzle = 64>, !tile.shared<32x64xbf16, swizzle = 128>
  return
}

// -----

func.func @transpose_c1_order(%a: !tile.shared<64x32xf8E4M3FN, swizzle = 32>, %b: !tile.shared<32x64xf8E4M3FN, swizzle = 64>) {
  // expected-error@+1 {{expected a stage of 8-bit elements}}
  tile.transpose %a to %b : !tile.shared<64x32xf8E4M3FN, swizzle = 32>, !tile.shared<32x64xf8E4M3FN, swizzle = 64>
  return
}

// -----

func.func @transpose_c1_shape(%a: !tile.shared<64x32xf8E4M3FN, swizzle = 32>, %b: !tile.shared<32x32xf8E4M3FN, swizzle = 32, quads>) {
  // expected-error@+1 {{expected a stage of 8-bit elements}}
  tile.transpose %a to %b : !tile.shared<64x32xf8E4M3FN, swizzle = 32>, !tile.shared<32x32xf8E4M3FN, swizzle = 32, quads>
  return
}

// -----

func.func @transpose_c1_rows(%a: !tile.shared<48x32xf8E4M3FN, swizzle = 32>, %b: !tile.shared<32x48xf8E4M3FN, swizzle = 32, quads>) {
  // expected-error@+1 {{expected a stage of 8-bit elements with rows in multiples of 32}}
  tile.transpose %a to %b : !tile.shared<48x32xf8E4M3FN, swizzle = 32>, !tile.shared<32x48xf8E4M3FN, swizzle = 32, quads>
  return
}

// -----

func.func @transpose_c2(%a: !tile.shared<64x32xf8E4M3FN, swizzle = 32>, %b: !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    // expected-error@+1 {{expected a role of one warpgroup that is not elected}}
    tile.transpose %a to %b : !tile.shared<64x32xf8E4M3FN, swizzle = 32>, !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>
  }
  role consumer warpgroups 2 registers 240 {
  }
  return
}

// -----

func.func @transpose_c2_warpgroups(%a: !tile.shared<64x32xf8E4M3FN, swizzle = 32>, %b: !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 3, grid = []>} {
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
  }
  role consumer warpgroups 2 registers 240 {
    // expected-error@+1 {{expected a role of one warpgroup that is not elected}}
    tile.transpose %a to %b : !tile.shared<64x32xf8E4M3FN, swizzle = 32>, !tile.shared<32x64xf8E4M3FN, swizzle = 64, quads>
  }
  return
}
