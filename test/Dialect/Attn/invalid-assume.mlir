// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @assume_c1(%x: tensor<?xf32>) {
  // expected-error@+1 {{expected a tensor of signless integers or indices with at least one dimension, got 'tensor<?xf32>'}}
  %a = attn.assume nondecreasing %x : tensor<?xf32>
  return
}

// -----

func.func @assume_c1_rank(%x: tensor<i32>) {
  // expected-error@+1 {{expected a tensor of signless integers or indices with at least one dimension, got 'tensor<i32>'}}
  %a = attn.assume nondecreasing %x : tensor<i32>
  return
}

// -----

func.func @assume_c1_unsigned(%x: tensor<4xui32>) {
  // expected-error@+1 {{expected a tensor of signless integers or indices with at least one dimension, got 'tensor<4xui32>'}}
  %a = attn.assume nondecreasing %x : tensor<4xui32>
  return
}
