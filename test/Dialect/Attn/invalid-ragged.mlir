// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @offsets_c1(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?xi16>, %m: index) {
  // expected-error@+1 {{expected offsets of i32 or i64, got 'tensor<?xi16>'}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?xi16> -> tensor<?x?x?x128xbf16>
  return
}

// -----

func.func @offsets_c1_rank(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?x2xi32>, %m: index) {
  // expected-error@+1 {{expected offsets of rank 1 (B + 1), got rank 2}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?x2xi32> -> tensor<?x?x?x128xbf16>
  return
}

// -----

func.func @offsets_c1_none(%rows: tensor<?x?x128xbf16>, %offsets: tensor<0xi32>, %m: index) {
  // expected-error@+1 {{expected an offset or more, got none}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<0xi32> -> tensor<?x?x?x128xbf16>
  return
}

// -----

func.func @offsets_c1_count(%rows: tensor<?x?x128xbf16>, %offsets: tensor<3xi32>, %m: index) {
  // expected-error@+1 {{expected 3 + 1 offsets, got 'tensor<3xi32>'}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<3xi32> -> tensor<3x?x?x128xbf16>
  return
}

// -----

func.func @offsets_c1_place(%o: tensor<2x2x?x64xf32>, %offsets: tensor<4xi32>, %out: tensor<?x2x64xf32>) {
  // expected-error@+1 {{expected 2 + 1 offsets, got 'tensor<4xi32>'}}
  %t = attn.place %o[%offsets] into %out : tensor<2x2x?x64xf32>, tensor<4xi32> -> tensor<?x2x64xf32>
  return
}

// -----

func.func @ragged_c1(%rows: tensor<?xbf16>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected rows of rank 2 or 3, got}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?xbf16>, tensor<?xi32> -> tensor<?x?x?x128xbf16>
  return
}

// -----

func.func @ragged_c1_result(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected result of rank 4 (B, H, M, ...), got rank 3}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x128xbf16>
  return
}

// -----

func.func @ragged_c2(%rows: tensor<?x4x128xbf16>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected H of rows and result to agree, got 4 and 2}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x4x128xbf16>, tensor<?xi32> -> tensor<?x2x?x128xbf16>
  return
}

// -----

func.func @ragged_c2_columns(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected D of rows and result to agree, got 128 and 64}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x?x64xbf16>
  return
}

// -----

func.func @ragged_c2_element(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected rows and result of one element type, got}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x?x128xf16>
  return
}

// -----

func.func @ragged_c2_storage(%rows: tensor<?x?x128xi8>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected rows elements of type f8E4M3FN, f8E5M2, f16, bf16 or f32, got 'i8'}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xi8>, tensor<?xi32> -> tensor<?x?x?x128xi8>
  return
}

// -----

func.func @ragged_c3(%rows: tensor<?x?x?xbf16>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected a static D above 0, got}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x?xbf16>, tensor<?xi32> -> tensor<?x?x?x128xbf16>
  return
}

// -----

func.func @ragged_c3_rows(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?xi32>, %m: index) {
  // expected-error@+1 {{expected M of the result to be dynamic, got}}
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x64x128xbf16>
  return
}

// -----

func.func @place_c1(%o: tensor<?x64xf32>, %offsets: tensor<?xi32>, %out: tensor<64xf32>) {
  // expected-error@+1 {{expected source of rank 3 or 4, got}}
  %t = attn.place %o[%offsets] into %out : tensor<?x64xf32>, tensor<?xi32> -> tensor<64xf32>
  return
}

// -----

func.func @place_c1_dest(%o: tensor<?x?x?x64xf32>, %offsets: tensor<?xi32>, %out: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected dest of rank 3 (T, H, ...), got rank 4}}
  %t = attn.place %o[%offsets] into %out : tensor<?x?x?x64xf32>, tensor<?xi32> -> tensor<?x?x?x64xf32>
  return
}

// -----

func.func @place_c1_heads(%o: tensor<?x4x?x64xf32>, %offsets: tensor<?xi32>, %out: tensor<?x2x64xf32>) {
  // expected-error@+1 {{expected H of source and dest to agree, got 4 and 2}}
  %t = attn.place %o[%offsets] into %out : tensor<?x4x?x64xf32>, tensor<?xi32> -> tensor<?x2x64xf32>
  return
}

// -----

func.func @place_c2(%o: tensor<?x?x?x64xf32>, %offsets: tensor<?xi32>, %out: tensor<?x?x32xf32>) {
  // expected-error@+1 {{expected source and dest of one element type and as many columns, got}}
  %t = attn.place %o[%offsets] into %out : tensor<?x?x?x64xf32>, tensor<?xi32> -> tensor<?x?x32xf32>
  return
}
