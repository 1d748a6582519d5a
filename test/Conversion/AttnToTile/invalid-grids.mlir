// RUN: attn-opt %s --convert-attn-to-tile -split-input-file -verify-diagnostics

func.func @five(%q: tensor<2x2x2x2x64xf16>) -> tensor<2x2x2x2x64xf16> {
  %init = tensor.empty() : tensor<2x2x2x2x64xf16>
  // expected-error@below {{expected a grid over (B, H, M tiles), or over these and parts or tiles of the keys before them, from 0 in steps of 1 and of the rows and keys of a tile, mapped to blocks}}
  %o = scf.forall (%g, %i, %j, %k, %l) = (0, 0, 0, 0, 0) to (2, 2, 2, 2, 64) step (1, 1, 1, 1, 1) shared_outs(%out = %init) -> tensor<2x2x2x2x64xf16> {
    %x = tensor.extract_slice %q[%g, %i, %j, %k, %l] [1, 1, 1, 1, 1] [1, 1, 1, 1, 1] : tensor<2x2x2x2x64xf16> to tensor<1x1xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %out[%g, %i, %j, %k, %l] [1, 1, 1, 1, 1] [1, 1, 1, 1, 1] : tensor<1x1xf16> into tensor<2x2x2x2x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_4>, #gpu.block<linear_dim_3>, #gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<2x2x2x2x64xf16>
}

// -----

// Who launches the kernel finds out from the arguments' sizes how many blocks there are.
func.func @parts(%p: tensor<?x?x?x?x64xf16>, %s: index, %t: tensor<?x?x?x?x64xf16>) -> tensor<?x?x?x?x64xf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %b = tensor.dim %p, %c1 : tensor<?x?x?x?x64xf16>
  %h = tensor.dim %p, %c2 : tensor<?x?x?x?x64xf16>
  %m = tensor.dim %p, %c3 : tensor<?x?x?x?x64xf16>
  // expected-error@below {{expected bounds that are sizes of arguments}}
  %o = scf.forall (%g, %i, %j, %k) = (0, 0, 0, 0) to (%s, %b, %h, %m) step (1, 1, 1, 1) shared_outs(%out = %t) -> tensor<?x?x?x?x64xf16> {
    %x = tensor.extract_slice %p[%g, %i, %j, %k, 0] [1, 1, 1, 1, 64] [1, 1, 1, 1, 1] : tensor<?x?x?x?x64xf16> to tensor<1x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %out[%g, %i, %j, %k, 0] [1, 1, 1, 1, 64] [1, 1, 1, 1, 1] : tensor<1x64xf16> into tensor<?x?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_3>, #gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x?x64xf16>
}

// -----

// Scratch is nobody's but the kernels': it cannot start as an argument.
func.func @inherited(%q: tensor<?x?x?x64xf16>, %t: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  // expected-error@below {{expected results that start as tensor.empty}}
  %x = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %t) -> tensor<?x?x?x64xf16> {
    %p = tensor.extract_slice %q[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<?x?x?x64xf16> to tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %p = tensor.extract_slice %x[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<?x?x?x64xf16> to tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

func.func @step(%q: tensor<?x?x?x64xf16>, %step: index) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  // expected-error@below {{in steps of 1 and of the rows and keys of a tile}}
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, %step) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %p = tensor.extract_slice %q[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<?x?x?x64xf16> to tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

// The runtime can evaluate sizes of arguments, and nothing made from them.
func.func @bounds(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %twice = arith.addi %m, %m : index
  %init = tensor.empty(%b, %h, %twice) : tensor<?x?x?x64xf16>
  // expected-error@below {{expected bounds that are sizes of arguments}}
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %twice) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %p = tensor.extract_slice %q[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<?x?x?x64xf16> to tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

func.func @rows(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  // expected-error@below {{expected 1 to 8 warpgroups, got 16}}
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 1024) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %zero = arith.constant 0.0 : f16
    %e = tensor.empty() : tensor<64x64xf16>
    %t = linalg.fill ins(%zero : f16) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

func.func @no_rows(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  // expected-error@below {{expected a grid over (B, H, M tiles)}}
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 0) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %zero = arith.constant 0.0 : f16
    %e = tensor.empty() : tensor<64x64xf16>
    %t = linalg.fill ins(%zero : f16) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

func.func @element_of_a_tile(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %zero = arith.constant 0.0 : f16
    %e = tensor.empty() : tensor<64x64xf16>
    %t = linalg.fill ins(%zero : f16) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
    // expected-error@below {{expected an element of an argument, got one of a tile 'tensor<64x64xf16>'}}
    %x = tensor.extract %t[%c0, %c0] : tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

func.func @argument(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    scf.forall.in_parallel {
      // expected-error@below {{expected a tile to insert, got 'memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>'}}
      tensor.parallel_insert_slice %q into %out[%i, %j, %k, 0] [%b, %h, %m, 64] [1, 1, 1, 1] : tensor<?x?x?x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

// Upstream folds no size of a dimension that is not there, and says nothing about it.
func.func @beyond_rank(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  // expected-error@below {{expected a dimension below 4, got 4 of 'tensor<?x?x?x64xf16>'}}
  %b = tensor.dim %q, %c4 : tensor<?x?x?x64xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %zero = arith.constant 0.0 : f16
    %e = tensor.empty() : tensor<64x64xf16>
    %t = linalg.fill ins(%zero : f16) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

func.func @unranked(%q: tensor<?x?x?x64xf16>, %u: tensor<*xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // expected-error@below {{expected a ranked tensor, got 'tensor<*xf16>'}}
  %b = tensor.dim %u, %c0 : tensor<*xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x64xf16> {
    %zero = arith.constant 0.0 : f16
    %e = tensor.empty() : tensor<64x64xf16>
    %t = linalg.fill ins(%zero : f16) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %k, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf16> into tensor<?x?x?x64xf16>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x64xf16>
}

// -----

func.func @no_extents(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : bf16
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xbf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xbf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xbf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xbf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> tensor<?x?x?x64xbf16> {
    %e = tensor.empty() : tensor<bf16>
    // expected-error@below {{expected tensors of rows by static columns in a block, got 'tensor<bf16>'}}
    %t = linalg.fill ins(%one : bf16) outs(%e : tensor<bf16>) -> tensor<bf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %k, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<bf16> into tensor<?x?x?x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %o : tensor<?x?x?x64xbf16>
}

// -----

func.func @dynamic_columns(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : bf16
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xbf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xbf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xbf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xbf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> tensor<?x?x?x64xbf16> {
    %e = tensor.empty(%m, %m) : tensor<?x?xbf16>
    // expected-error@below {{expected tensors of rows by static columns in a block, got 'tensor<?x?xbf16>'}}
    %t = linalg.fill ins(%one : bf16) outs(%e : tensor<?x?xbf16>) -> tensor<?x?xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %k, 0] [1, 1, %m, %m] [1, 1, 1, 1] : tensor<?x?xbf16> into tensor<?x?x?x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %o : tensor<?x?x?x64xbf16>
}

// -----

func.func @tiles_in_a_search(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : bf16
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xbf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xbf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xbf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xbf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> tensor<?x?x?x64xbf16> {
    %e = tensor.empty(%m) : tensor<?x64xbf16>
    %t = linalg.fill ins(%one : bf16) outs(%e : tensor<?x64xbf16>) -> tensor<?x64xbf16>
    %w = scf.while (%x = %t) : (tensor<?x64xbf16>) -> tensor<?x64xbf16> {
      %c = arith.cmpi slt, %i, %j : index
      scf.condition(%c) %x : tensor<?x64xbf16>
    } do {
    ^bb0(%x: tensor<?x64xbf16>):
      // expected-error@below {{expected scalars in control flow on scalars, got 'tensor<?x64xbf16>'}}
      %y = arith.addf %x, %x : tensor<?x64xbf16>
      scf.yield %y : tensor<?x64xbf16>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %w into %out[%i, %j, %k, 0] [1, 1, %m, 64] [1, 1, 1, 1] : tensor<?x64xbf16> into tensor<?x?x?x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %o : tensor<?x?x?x64xbf16>
}

// -----

func.func @size_in_a_search(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : bf16
  %b = tensor.dim %q, %c0 : tensor<?x?x?x64xbf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x64xbf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x64xbf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x64xbf16>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> tensor<?x?x?x64xbf16> {
    %e = tensor.empty(%m) : tensor<?x64xbf16>
    %t = linalg.fill ins(%one : bf16) outs(%e : tensor<?x64xbf16>) -> tensor<?x64xbf16>
    %w = scf.while (%x = %c0) : (index) -> index {
      // expected-error@below {{expected control flow on scalars to read elements of arguments, got 'tensor<?x?x?x64xbf16>'}}
      %d = tensor.dim %q, %x : tensor<?x?x?x64xbf16>
      %c = arith.cmpi slt, %d, %j : index
      scf.condition(%c) %d : index
    } do {
    ^bb0(%x: index):
      scf.yield %x : index
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %out[%i, %j, %w, 0] [1, 1, %m, 64] [1, 1, 1, 1] : tensor<?x64xbf16> into tensor<?x?x?x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// A number of tiles of nothing is no number.
#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @no_tiles(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %m2 = affine.apply affine_map<(d0) -> (d0 ceildiv 0)>(%m)
  // expected-error@below {{expected bounds that are sizes of arguments}}
  %r = scf.forall (%i) = (0) to (%m2) step (1) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @less_than_no_tiles(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %m2 = affine.apply affine_map<(d0) -> (d0 ceildiv -3)>(%m)
  // expected-error@below {{expected bounds that are sizes of arguments}}
  %r = scf.forall (%i) = (0) to (%m2) step (1) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

func.func @table(%n: i32) -> tensor<2x2x64x2x1xi32> {
  %e = tensor.empty() : tensor<2x2x64x2x1xi32>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 64) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x64x2x1xi32>) {
    // expected-error@below {{expected numbers one behind the other, got 'tensor<2x1xi32>'}}
    %list = tensor.from_elements %n, %n : tensor<2x1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %list into %o[%i, %j, %t, 0, 0] [1, 1, 1, 2, 1] [1, 1, 1, 1, 1] : tensor<2x1xi32> into tensor<2x2x64x2x1xi32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x64x2x1xi32>
}
