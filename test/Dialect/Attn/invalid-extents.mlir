// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @extent_c1(%q: tensor<?x?x?x536870912xf32>) -> tensor<?x?x?x536870912xf32> {
  // expected-error@+1 {{expected extents below 536870912, got 536870912 in 'tensor<?x?x?x536870912xf32>'}}
  %o = attn.attention %q, %q, %q : tensor<?x?x?x536870912xf32>, tensor<?x?x?x536870912xf32>, tensor<?x?x?x536870912xf32> -> tensor<?x?x?x536870912xf32>
  return %o : tensor<?x?x?x536870912xf32>
}

// -----

func.func @extent_c1_merge(%p: memref<2x9223372036854775807x16xf32>, %l: memref<2x?xf32>, %o: memref<?x16xf32>) {
  // expected-error@+1 {{expected extents below 536870912, got 9223372036854775807 in 'memref<2x9223372036854775807x16xf32>'}}
  attn.merge %p, %l outs(%o) : memref<2x9223372036854775807x16xf32>, memref<2x?xf32>, memref<?x16xf32>
  return
}

// -----

func.func @extent_c1_assume(%t: tensor<1000000000xi32>) -> tensor<1000000000xi32> {
  // expected-error@+1 {{expected extents below 536870912, got 1000000000 in 'tensor<1000000000xi32>'}}
  %s = attn.assume nondecreasing %t : tensor<1000000000xi32>
  return %s : tensor<1000000000xi32>
}
