// RUN: attn-opt %s --split-input-file --verify-diagnostics

!row = tensor<2x4x3xf32>
func.func @row_delta_c1(%o: tensor<2x4x3x16xbf16>, %do: tensor<2x4x5x16xbf16>, %l: !row) {
  // expected-error@+1 {{expected M of output and d_output to agree, got 3 and 5}}
  %n, %d = attn.row_delta %o, %do, %l : tensor<2x4x3x16xbf16>, tensor<2x4x5x16xbf16>, !row -> !row, !row
  return
}

// -----

!row = tensor<2x4x3xf32>
func.func @row_delta_c1_element(%o: tensor<2x4x3x16xi8>, %do: tensor<2x4x3x16xbf16>, %l: !row) {
  // expected-error@+1 {{expected output elements of type f16, bf16, f32 or f64, got 'i8'}}
  %n, %d = attn.row_delta %o, %do, %l : tensor<2x4x3x16xi8>, tensor<2x4x3x16xbf16>, !row -> !row, !row
  return
}

// -----

!row = tensor<2x4x3xf32>
func.func @row_delta_c2(%o: tensor<2x4x3x16xbf16>, %l: !row) {
  // expected-error@+1 {{expected delta elements of type f32 or f64, got 'bf16'}}
  %n, %d = attn.row_delta %o, %o, %l : tensor<2x4x3x16xbf16>, tensor<2x4x3x16xbf16>, !row -> !row, tensor<2x4x3xbf16>
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_c8_split(%q: !t, %l: !row, %short: tensor<2x4x2xf32>) {
  // expected-error@+1 {{expected M of query and delta to agree, got 3 and 2}}
  %dq = attn.attention_grad_query %q, %q, %q, %q, %l, %short : !t, !t, !t, !t, !row, tensor<2x4x2xf32> -> d_query(!t)
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_grad_c1_split(%q: !t, %l: !row) {
  // expected-error@+1 {{expected a gradient that is wanted, got none}}
  attn.attention_grad_key_value %q, %q, %q, %q, %l, %l : !t, !t, !t, !t, !row, !row ->
  return
}

// -----

!t = tensor<2x4x3x16xbf16>
!row = tensor<2x4x3xf32>
func.func @attention_c8_delta(%q: !t, %l: !row) {
  // expected-error@+1 {{expected exact_delta elements of type f32 or f64, got 'bf16'}}
  %d = attn.attention_grad_delta %q, %q, %q, %q, %l, %l : !t, !t, !t, !t, !row, !row -> tensor<2x4x3xbf16>
  return
}

// -----

func.func @attention_c20_rows(%o: tensor<?x4x?x16xbf16>, %l: tensor<?x4x3xf32>) {
  // expected-error@+1 {{expected M of lse and delta to agree, got 3 and 5}}
  %n, %d = attn.row_delta %o, %o, %l : tensor<?x4x?x16xbf16>, tensor<?x4x?x16xbf16>, tensor<?x4x3xf32> -> tensor<?x4x?xf32>, tensor<?x4x5xf32>
  return
}

// -----

!t = tensor<?x?x?x16xbf16>
func.func @attention_c20_split(%q: !t, %n: tensor<?x?x3xf32>, %d: tensor<?x?x5xf32>) {
  // expected-error@+1 {{expected M of neg_lse2 and delta to agree, got 3 and 5}}
  %dq = attn.attention_grad_query %q, %q, %q, %q, %n, %d : !t, !t, !t, !t, tensor<?x?x3xf32>, tensor<?x?x5xf32> -> d_query(!t)
  return
}

// -----

!row = tensor<2x4x3xf32>
func.func @row_delta_c3(%o: tensor<2x4x3x16xbf16>, %l: !row) {
  // expected-error@+1 {{expected neg_low2 beside lse_low and not without, got lse_low alone}}
  %n, %d = attn.row_delta %o, %o, %l lse_low(%l : !row) : tensor<2x4x3x16xbf16>, tensor<2x4x3x16xbf16>, !row -> !row, !row
  return
}
