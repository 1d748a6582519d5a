// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @mark_read_c1(%p: tensor<128x96xbf16, #tile.acc<units = 2>>, %marks: !tile.shared<8x16xi32, swizzle = 32>) {
  // expected-error@+1 {{expected marks of one stage of 8 columns of i32 and at least 8 rows, got '!tile.shared<8x16xi32, swizzle = 32>'}}
  tile.mark_read %p to %marks : tensor<128x96xbf16, #tile.acc<units = 2>>, !tile.shared<8x16xi32, swizzle = 32>
  return
}

// -----

func.func @mark_read_c1_rows(%p: tensor<192x96xbf16, #tile.acc<units = 3>>, %marks: !tile.shared<8x8xi32, swizzle = 32>) {
  // expected-error@+1 {{expected marks of one stage of 8 columns of i32 and at least 12 rows, got}}
  tile.mark_read %p to %marks : tensor<192x96xbf16, #tile.acc<units = 3>>, !tile.shared<8x8xi32, swizzle = 32>
  return
}

// -----

func.func @mark_read_c2(%p: tensor<128x96xbf16>, %marks: !tile.shared<8x8xi32, swizzle = 32>) {
  // expected-error@+1 {{expected weights of 16-bit floats in #tile.acc and at most 256 columns, got 'tensor<128x96xbf16>'}}
  tile.mark_read %p to %marks : tensor<128x96xbf16>, !tile.shared<8x8xi32, swizzle = 32>
  return
}

// -----

func.func @clear_unread_c1(%v: !tile.shared<96x64xbf16, swizzle = 128, stages = 2>, %marks: !tile.shared<8x8xi32, swizzle = 32>) {
  // expected-error@+1 {{expected one stage of at most 256 rows of 16-bit elements and no condition beside marks, got '!tile.shared<96x64xbf16, swizzle = 128, stages = 2>'}}
  tile.clear_unread %v by %marks : !tile.shared<96x64xbf16, swizzle = 128, stages = 2>, !tile.shared<8x8xi32, swizzle = 32>
  return
}

// -----

func.func @clear_unread_c2(%v: tensor<96x64xbf16>, %p: tensor<128x80xbf16>) {
  // expected-error@+1 {{expected a column for each row of 'tensor<96x64xbf16>', got 'tensor<128x80xbf16>'}}
  %0 = tile.clear_unread %v by %p : tensor<96x64xbf16>, tensor<128x80xbf16> -> tensor<96x64xbf16>
  return
}

// -----

func.func @clear_unread_c3(%v: tensor<96x64xbf16>, %p: tensor<128x96xbf16>) {
  // expected-error@+1 {{expected a result of the type of a register tile, and none of a shared one, got values of 'tensor<96x64xbf16>'}}
  tile.clear_unread %v by %p : tensor<96x64xbf16>, tensor<128x96xbf16>
  return
}

// -----

func.func @clear_unread_c4(%v: tensor<96x64xbf16>, %p: tensor<128x96xbf16>, %n: index) {
  // expected-error@+1 {{expected what is read, or a first row to clear, got both}}
  %0 = tile.clear_unread %v by %p from %n : tensor<96x64xbf16>, tensor<128x96xbf16> -> tensor<96x64xbf16>
  return
}

// -----

func.func @clear_unread_c4_neither(%v: tensor<96x64xbf16>) {
  // expected-error@+1 {{expected what is read, or a first row to clear, got neither}}
  %0 = tile.clear_unread %v : tensor<96x64xbf16> -> tensor<96x64xbf16>
  return
}

// -----

func.func @clear_unread_c4_element(%v: !tile.shared<96x32xf32, swizzle = 128>, %n: index) {
  // expected-error@+1 {{expected rows of 16-bit elements from a first row on, got '!tile.shared<96x32xf32, swizzle = 128>'}}
  tile.clear_unread %v from %n : !tile.shared<96x32xf32, swizzle = 128>
  return
}
