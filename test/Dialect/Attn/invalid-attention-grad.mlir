// RUN: attn-opt %s --split-input-file --verify-diagnostics

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c1(%q: !t, %l: !row) {
  // expected-error@+1 {{expected a gradient that is wanted, got none}}
  attn.attention_grad %q, %q, %q, %q, %l, %q : !t, !t, !t, !t, !row, !t ->
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c2(%q: !t, %l: !row) {
  // expected-error@+1 {{expected d_key of the shape of key, got 'tensor<2x4x5x16xbf16>' and 'tensor<2x4x3x16xbf16>'}}
  %dk = attn.attention_grad %q, %q, %q, %q, %l, %q : !t, !t, !t, !t, !row, !t -> d_key(tensor<2x4x5x16xbf16>)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c2_element(%q: !t, %l: !row) {
  // expected-error@+1 {{expected d_value elements of type 'bf16', f32 or f64, got 'f16'}}
  %dv = attn.attention_grad %q, %q, %q, %q, %l, %q : !t, !t, !t, !t, !row, !t -> d_value(tensor<2x4x3x16xf16>)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c3(%q: !t, %l: !row) {
  // expected-error@+1 {{expected a sink beside d_sink, got none}}
  %ds = attn.attention_grad %q, %q, %q, %q, %l, %q : !t, !t, !t, !t, !row, !t -> d_sink(tensor<4xf32>)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c3_heads(%q: !t, %l: !row, %s: tensor<4xf32>) {
  // expected-error@+1 {{expected H of query and d_sink to agree, got 4 and 3}}
  %ds = attn.attention_grad %q, %q, %q, %q, %l, %q sink(%s : tensor<4xf32>) : !t, !t, !t, !t, !row, !t -> d_sink(tensor<3xf32>)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c4(%q: !t, %l: !row, %x: tensor<4xf32>) {
  // expected-error@+1 {{expected different tensors in wrt, got number 1 a second time}}
  %d:2 = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x, %x : tensor<4xf32>, tensor<4xf32>)
      : !t, !t, !t, !t, !row, !t -> d_wrt(tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c4_element(%q: !t, %l: !row, %x: tensor<4xi32>) {
  // expected-error@+1 {{expected wrt elements of type f16, bf16 or f32, got 'i32'}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : tensor<4xi32>) : !t, !t, !t, !t, !row, !t -> d_wrt(tensor<4xf32>)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c5(%q: !t, %l: !row, %x: tensor<4xbf16>) {
  // expected-error@+1 {{expected 1 gradients of tensors in wrt, got 0}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : tensor<4xbf16>) : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c5_element(%q: !t, %l: !row, %x: tensor<4xbf16>) {
  // expected-error@+1 {{expected d_wrt elements of type f32 or f64, got 'bf16'}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : tensor<4xbf16>) : !t, !t, !t, !t, !row, !t -> d_wrt(tensor<4xbf16>)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c5_shape(%q: !t, %l: !row, %x: tensor<4xbf16>) {
  // expected-error@+1 {{expected d_wrt of the shape of wrt, got 'tensor<5xf32>' and 'tensor<4xbf16>'}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : tensor<4xbf16>) : !t, !t, !t, !t, !row, !t -> d_wrt(tensor<5xf32>)
  return
}

// -----

// What attention's constraints say of output and lse holds for their gradients.
!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_c7_gradient(%q: !t, %l: !row, %do: tensor<2x4x5x16xbf16>) {
  // expected-error@+1 {{expected M of query and d_output to agree, got 3 and 5}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %do : !t, !t, !t, !t, !row, tensor<2x4x5x16xbf16> -> d_query(!t)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_c8_gradient(%q: !t, %l: !row, %dl: tensor<2x4x3xbf16>) {
  // expected-error@+1 {{expected d_lse elements of type f32 or f64, got 'bf16'}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q d_lse(%dl : tensor<2x4x3xbf16>) : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_c14_gradient(%q: !t, %l: !row) {
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    grad(%s, %dt, %b, %h, %m, %n) {
      %x = arith.extf %dt : f32 to f64
      // expected-error@+1 {{expected the grad region to yield 'f32', got 'f64'}}
      attn.yield %x : f64
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return
}

// -----

!t = tensor<?x?x?x16xbf16>
!row = tensor<?x?x?xf32>
func.func @attention_c20_sink(%q: !t, %l: !row, %sink: tensor<4xf32>) {
  // expected-error@+1 {{expected H of sink and d_sink to agree, got 4 and 8}}
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q sink(%sink : tensor<4xf32>) : !t, !t, !t, !t, !row, !t -> d_sink(tensor<8xf32>)
  return
}

// -----

!t = tensor<?x?x?x16xbf16>
!row = tensor<?x?x?xf32>
func.func @attention_c20_keys(%q: !t, %k: tensor<?x?x4x16xbf16>, %l: !row) {
  // expected-error@+1 {{expected N of key and d_value to agree, got 4 and 8}}
  %d = attn.attention_grad %q, %k, %q, %q, %l, %q : !t, tensor<?x?x4x16xbf16>, !t, !t, !row, !t -> d_value(tensor<?x?x8x16xbf16>)
  return
}

// -----

!t = tensor<?x?x?x16xbf16>
!row = tensor<?x?x?xf32>
// Sums over all rows would have those that are not there.
func.func @attention_grad_c6(%rows: tensor<?x?x16xbf16>, %offsets: tensor<?xi32>, %m: index, %k: !t, %l: !row, %sink: tensor<4xf32>) {
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x16xbf16>, tensor<?xi32> -> !t
  // expected-error@+1 {{expected no d_sink and no d_wrt beside attn.ragged: write the sequences as documents (#attn.document) of one batch, which have them}}
  %d = attn.attention_grad %q, %k, %k, %q, %l, %q sink(%sink : tensor<4xf32>) : !t, !t, !t, !t, !row, !t -> d_sink(tensor<4xf32>)
  return
}

// -----

!t = tensor<?x?x?x16xbf16>
!row = tensor<?x?x?xf32>
// Rows that a sequence does not have would be those of another tensor.
func.func @attention_grad_c7(%rows: tensor<?x?x16xbf16>, %offsets: tensor<?xi32>, %m: index, %k: !t, %l: !row) {
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x16xbf16>, tensor<?xi32> -> !t
  // expected-error@+1 {{expected output, lse and their gradients to be rows of the sequences that query is of, got 'tensor<?x?x?xf32>' of others}}
  %d = attn.attention_grad %q, %k, %k, %q, %l, %q : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return
}

// -----

!t = tensor<?x?x?x16xbf16>
!row = tensor<?x?x?xf32>
func.func @attention_grad_c7_value(%rows: tensor<?x?x16xbf16>, %offsets: tensor<?xi32>, %n: index, %q: !t, %l: !row) {
  %k = attn.ragged %rows[%offsets] up_to %n : tensor<?x?x16xbf16>, tensor<?xi32> -> !t
  // expected-error@+1 {{expected value to be rows of the sequences that key is of}}
  %d = attn.attention_grad %q, %k, %q, %q, %l, %q : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return
}
