// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @attention_c13(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-error@+1 {{expected scalars inside a mask region, got 'tensor<3xindex>'}}
      %table = arith.constant dense<[0, 1, 2]> : tensor<3xindex>
      %x = tensor.extract %table[%m] : tensor<3xindex>
      %keep = arith.cmpi eq, %x, %n : index
      attn.yield %keep : i1
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c13_vector(%q: tensor<2x4x3x16xf32>, %pairs: tensor<?xvector<4xf32>>) {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      // expected-error@+1 {{expected scalars inside a score region, got 'vector<4xf32>'}}
      %x = tensor.extract %pairs[%m] : tensor<?xvector<4xf32>>
      attn.yield %s : f32
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
