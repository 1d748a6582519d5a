// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @extent_c1(%q: tensor<?x?x?x1073741825xf32>) -> tensor<?x?x?x1073741825xf32> {
  // expected-error@+1 {{expected extents of at most 1073741824, got 1073741825 in 'tensor<?x?x?x1073741825xf32>'}}
  %o = attn.attention %q, %q, %q : tensor<?x?x?x1073741825xf32>, tensor<?x?x?x1073741825xf32>, tensor<?x?x?x1073741825xf32> -> tensor<?x?x?x1073741825xf32>
  return %o : tensor<?x?x?x1073741825xf32>
}

// -----

func.func @extent_c1_merge(%p: memref<2x9223372036854775807x16xf32>, %l: memref<2x?xf32>, %o: memref<?x16xf32>) {
  // expected-error@+1 {{expected extents of at most 1073741824, got 9223372036854775807 in 'memref<2x9223372036854775807x16xf32>'}}
  attn.merge %p, %l outs(%o) : memref<2x9223372036854775807x16xf32>, memref<2x?xf32>, memref<?x16xf32>
  return
}

// -----

func.func @extent_c1_assume(%t: tensor<2000000000xi32>) -> tensor<2000000000xi32> {
  // expected-error@+1 {{expected extents of at most 1073741824, got 2000000000 in 'tensor<2000000000xi32>'}}
  %s = attn.assume nondecreasing %t : tensor<2000000000xi32>
  return %s : tensor<2000000000xi32>
}
