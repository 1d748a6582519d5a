// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected rows in multiples of 128 (64 for each of 2 units), got 64}}
func.func private @layout_c1(tensor<64x64xf32, #tile.acc<units = 2>>)

// -----

// expected-error@+1 {{expected 1 to 8 units, got 9}}
func.func private @layout_c1_units(tensor<576x64xf32, #tile.acc<units = 9>>)

// -----

// expected-error@+1 {{expected a tile of rank 1, got rank 2}}
func.func private @layout_c2(tensor<64x64xf32, #tile.row<#tile.acc<units = 1>>>)

// -----

// expected-error@+1 {{expected columns in multiples of 16, got 24}}
func.func private @layout_c3(tensor<64x24xbf16, #tile.operand_a<units = 1>>)

// -----

// expected-error@+1 {{expected columns in multiples of 8, got 12}}
func.func private @layout_c3_acc(tensor<64x12xf32, #tile.acc<units = 1>>)

// -----

// expected-error@+1 {{expected columns in multiples of 32, got 48}}
func.func private @layout_c3_blocked(tensor<64x48xbf16, #tile.blocked<vector = 8, lanes = 4, warps = 4>>)

// -----

// expected-error@+1 {{expected columns in multiples of 32, got 48}}
func.func private @layout_c3_chunked(tensor<64x48xbf16, #tile.chunked<#tile.acc<units = 1>>>)

// -----

// expected-error@+1 {{expected elements of 8 or 16 bits in #tile.operand_a, got 'f32'}}
func.func private @layout_c4(tensor<64x64xf32, #tile.operand_a<units = 1>>)

// -----

// expected-error@+1 {{expected 4 columns in #tile.quad, got 8}}
func.func private @layout_c5(tensor<64x8xf32, #tile.quad<#tile.acc<units = 1>>>)

// -----

// expected-error@+1 {{expected positive vector and warps and lanes that divide 32}}
func.func private @layout_c6(tensor<64x64xf32, #tile.blocked<vector = 8, lanes = 5, warps = 4>>)

// -----

// expected-error@+1 {{expected rows in multiples of 32, got 48}}
func.func private @layout_c6_rows(tensor<48x32xbf16, #tile.blocked<vector = 8, lanes = 4, warps = 4>>)

// -----

// expected-error@+1 {{expected at most 1048576 elements in registers, got 1000000, 1000000}}
func.func private @layout_c7(tensor<1000000x1000000xf32, #tile.acc<units = 1>>)

// -----

// expected-error@+1 {{expected elements of 16 or 32 bits in #tile.chunked, got 'f64'}}
func.func private @layout_c8(tensor<64x64xf64, #tile.chunked<#tile.acc<units = 1>>>)

// -----

// expected-error@+1 {{expected columns in multiples of 9223372036854775807, got 64}}
func.func private @layout_c6_endless(tensor<64x64xbf16, #tile.blocked<vector = 9223372036854775807, lanes = 8, warps = 4>>)

// -----

// expected-error@+1 {{expected the rows of #tile.acc or #tile.blocked, got #tile.operand_a<units = 1>}}
func.func private @layout_c9(tensor<64xf32, #tile.row<#tile.operand_a<units = 1>>>)

// -----

// expected-error@+1 {{expected rows in multiples of 16, got 24}}
func.func private @layout_c6_row(tensor<24xf32, #tile.row<#tile.blocked<vector = 4, lanes = 8, warps = 4>>>)

// -----

// expected-error@+1 {{expected the product wgmma, tcgen05 or mma.sync, got 'mma'}}
func.func private @layout_c10(tensor<64x64xf32, #tile.acc<units = 1, product = "mma">>)

// -----

// expected-error@+1 {{expected elements of 8 bits in quads, got 'bf16'}}
func.func private @layout_c4_quads(tensor<64x64xbf16, #tile.operand_a<units = 1, quads = true>>)
