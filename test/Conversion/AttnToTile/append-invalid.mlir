// RUN: attn-opt %s --convert-attn-to-tile --split-input-file --verify-diagnostics

func.func @inherited(%new: tensor<9x2x64xf32>, %slots: tensor<9xi32>, %pool: tensor<3x4x2x64xf32>) -> tensor<3x4x2x64xf32> {
  // expected-error@+1 {{expected a tensor.empty that the function returns, the caller's memory, as its destination}}
  %r = attn.append %new[%slots] into %pool : tensor<9x2x64xf32>, tensor<9xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return %r : tensor<3x4x2x64xf32>
}

// -----

func.func @made(%a: tensor<9x2x64xf32>, %b: tensor<9x2x64xf32>, %slots: tensor<9xi32>) -> tensor<3x4x2x64xf32> {
  %new = arith.addf %a, %b : tensor<9x2x64xf32>
  %pool = tensor.empty() : tensor<3x4x2x64xf32>
  // expected-error@+1 {{expected operands that are arguments of the function}}
  %r = attn.append %new[%slots] into %pool : tensor<9x2x64xf32>, tensor<9xi32>, tensor<3x4x2x64xf32> -> tensor<3x4x2x64xf32>
  return %r : tensor<3x4x2x64xf32>
}

// -----

func.func @columns(%new: tensor<9x2x12xf32>, %slots: tensor<9xi32>) -> tensor<3x4x2x12xf32> {
  %pool = tensor.empty() : tensor<3x4x2x12xf32>
  // expected-error@+1 {{expected D to be a multiple of 8, got 'tensor<9x2x12xf32>'}}
  %r = attn.append %new[%slots] into %pool : tensor<9x2x12xf32>, tensor<9xi32>, tensor<3x4x2x12xf32> -> tensor<3x4x2x12xf32>
  return %r : tensor<3x4x2x12xf32>
}
