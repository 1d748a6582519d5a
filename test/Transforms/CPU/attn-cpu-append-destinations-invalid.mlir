// RUN: attn-opt %s --attn-cpu-append-destinations --split-input-file --verify-diagnostics

func.func @blocks(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+2 {{attn-cpu-append-destinations: expected room 3 'online', got a program of no room}}
  // expected-note@+1 {{'cf.br' in room 3 'online': expected ops of func, tensor, arith, math, linalg, affine, attn, scf, bufferization, got one of cf}}
  cf.br ^bb1
^bb1:
  return %a : tensor<4x8xf32>
}
