// RUN: attn-opt %s --attn-cpu-read-views --split-input-file --verify-diagnostics

func.func @returned(%pool: tensor<?x64x?x8xf32>, %table: tensor<?x?xi32>) -> tensor<?x?x?x8xf32> {
  // expected-error@+1 {{expected sizes and slices of rows of one head as its users, got 'func.return'}}
  %k = attn.paged %pool[%table] : tensor<?x64x?x8xf32>, tensor<?x?xi32> -> tensor<?x?x?x8xf32>
  return %k : tensor<?x?x?x8xf32>
}

// -----

func.func @no_dimension(%rows: tensor<?x?x8xf32>, %offsets: tensor<?xi32>, %m: index) -> index {
  %c9 = arith.constant 9 : index
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x8xf32>, tensor<?xi32> -> tensor<?x?x?x8xf32>
  // expected-error@+1 {{expected a dimension below 4, got 9}}
  %n = tensor.dim %q, %c9 : tensor<?x?x?x8xf32>
  return %n : index
}

// -----

func.func @strided(%rows: tensor<?x?x8xf32>, %offsets: tensor<?xi32>, %m: index) -> tensor<4x8xf32> {
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x8xf32>, tensor<?xi32> -> tensor<?x?x?x8xf32>
  // expected-error@+1 {{expected a slice of rows of a view, with strides of 1}}
  %t = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 4, 8] [1, 1, 2, 1] : tensor<?x?x?x8xf32> to tensor<4x8xf32>
  return %t : tensor<4x8xf32>
}

// -----

func.func @heads(%rows: tensor<?x?x8xf32>, %offsets: tensor<?xi32>, %m: index) -> tensor<2x4x8xf32> {
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x8xf32>, tensor<?xi32> -> tensor<?x?x?x8xf32>
  // expected-error@+1 {{expected a slice of rows of one head of a view}}
  %t = tensor.extract_slice %q[0, 0, 0, 0] [1, 2, 4, 8] [1, 1, 1, 1] : tensor<?x?x?x8xf32> to tensor<2x4x8xf32>
  return %t : tensor<2x4x8xf32>
}
