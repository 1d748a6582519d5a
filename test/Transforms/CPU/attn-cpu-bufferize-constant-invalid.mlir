// RUN: attn-opt %s --canonicalize --attn-cpu-bufferize --split-input-file --verify-diagnostics

func.func @folded(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  // expected-error@below {{expected a constant of static extents, got 'tensor<?x?xi32>'}}
  %y = arith.xori %x, %x : tensor<?x?xi32>
  return %y : tensor<?x?xi32>
}

// -----

func.func @endless(%x: tensor<536870912x536870912xi32>) -> tensor<536870912x536870912xi32> {
  // expected-error@below {{expected a constant of at most 67108864 elements, got 'tensor<536870912x536870912xi32>'}}
  %y = arith.xori %x, %x : tensor<536870912x536870912xi32>
  return %y : tensor<536870912x536870912xi32>
}
