// RUN: attn-opt %s --canonicalize --attn-cpu-bufferize --verify-diagnostics

func.func @folded(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  // expected-error@below {{expected a constant of static extents, got 'tensor<?x?xi32>'}}
  %y = arith.xori %x, %x : tensor<?x?xi32>
  return %y : tensor<?x?xi32>
}
