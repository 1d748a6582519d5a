// RUN: attn-opt %s --attn-cpu-append-destinations --split-input-file --verify-diagnostics

// expected-error @below {{expected a body of one block that returns, got 2 that begin with one ended by 'cf.br'}}
func.func @blocks(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  cf.br ^bb1
^bb1:
  return %a : tensor<4x8xf32>
}
