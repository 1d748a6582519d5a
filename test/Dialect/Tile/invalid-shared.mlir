// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected one dimension, or two, the first a multiple of 8}}
func.func private @shared_c1(!tile.shared<12x64xbf16, swizzle = 128>)

// -----

// expected-error@+1 {{expected one column or more, got 0}}
func.func private @shared_c1_row(!tile.shared<0xf32>)

// -----

// expected-error@+1 {{expected elements of 8, 16 or 32 bits, got 'f64'}}
func.func private @shared_c2(!tile.shared<64x64xf64, swizzle = 128>)

// -----

// expected-error@+1 {{expected swizzle 128, 64 or 32, got 16}}
func.func private @shared_c3(!tile.shared<64x64xbf16, swizzle = 16>)

// -----

// expected-error@+1 {{expected stages of a multiple of 1024 bytes, got 256}}
func.func private @shared_c4(!tile.shared<8x16xbf16, swizzle = 32, stages = 2>)

// -----

// expected-error@+1 {{expected stages of a multiple of 128 bytes, got 192}}
func.func private @shared_c4_row(!tile.shared<48xf32, stages = 2>)

// -----

// expected-error@+1 {{expected 1 to 64 stages, got 0}}
func.func private @shared_c4_none(!tile.shared<8x64xbf16, swizzle = 128, stages = 0>)

// -----

// expected-error@+1 {{expected 1 to 64 stages, got 1024}}
func.func private @shared_c4_stages(!tile.shared<64x64xbf16, swizzle = 128, stages = 1024>)

// -----

// expected-error@+1 {{expected at most 16777216 rows and columns, got 1073741824, 64}}
func.func private @shared_c5(!tile.shared<1073741824x64xbf16, swizzle = 128>)

// -----

func.func @alloc_shared_c1() {
  // expected-error@+1 {{expected an offset that is a multiple of 1024, got 512}}
  %s = tile.alloc_shared at 512 : !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

func.func @alloc_shared_c1_negative() {
  // expected-error@+1 {{expected an offset that is a multiple of 1024, got -1024}}
  %s = tile.alloc_shared at -1024 : !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

// expected-error@+1 {{expected quads of 8-bit elements in multiples of 16 columns, got 64, 64 of 'bf16'}}
func.func private @shared_c6(!tile.shared<64x64xbf16, swizzle = 128, quads>)

// -----

// expected-error@+1 {{expected quads of 8-bit elements in multiples of 16 columns, got 64, 40 of 'f8E4M3FN'}}
func.func private @shared_c6_columns(!tile.shared<64x40xf8E4M3FN, swizzle = 32, quads>)
