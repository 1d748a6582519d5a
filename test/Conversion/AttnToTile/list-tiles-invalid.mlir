// RUN: attn-opt %s --convert-attn-to-tile -split-input-file -verify-diagnostics

// What is inserted is in place already, not somewhere else.
func.func @elsewhere(%s: tensor<?x?x?x?xi32>) -> tensor<?x?x?x1xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %s, %c0 : tensor<?x?x?x?xi32>
  %h = tensor.dim %s, %c1 : tensor<?x?x?x?xi32>
  %m = tensor.dim %s, %c2 : tensor<?x?x?x?xi32>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x1xi32>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 1) shared_outs(%out = %init) -> tensor<?x?x?x1xi32> {
    %x = tensor.extract_slice %out[%i, %j, %c0, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<?x?x?x1xi32> to tensor<1xi32>
    %y = attn.tile_status %c1 rows, %c1 keys size 32 outs(%x) mask(%bb, %hh, %mm, %nn) {
      %keep = arith.cmpi sle, %nn, %mm : index
      attn.yield %keep : i1
    } : tensor<1xi32> -> tensor<1xi32>
    scf.forall.in_parallel {
      // expected-error@below {{expected to insert a tile, or what is in place}}
      tensor.parallel_insert_slice %y into %out[%i, %j, %k, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<1xi32> into tensor<?x?x?x1xi32>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x1xi32>
}

// -----

func.func @made_here(%q: tensor<?x?x?x16xf16>) -> tensor<?x?x?x1xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x16xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x16xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x16xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x1xi32>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 1) shared_outs(%out = %init) -> tensor<?x?x?x1xi32> {
    %x = tensor.empty() : tensor<1xi32>
    // expected-error@below {{expected operands that are slices of the grids' results, got 'tensor<1xi32>'}}
    %y = attn.tile_status %c1 rows, %c1 keys size 32 outs(%x) mask(%bb, %hh, %mm, %nn) {
      %keep = arith.cmpi sle, %nn, %mm : index
      attn.yield %keep : i1
    } : tensor<1xi32> -> tensor<1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %out[%i, %j, %k, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<1xi32> into tensor<?x?x?x1xi32>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x1xi32>
}

// -----

func.func @keys(%q: tensor<?x?x?x16xf16>) -> tensor<?x?x?x1xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %rows = arith.constant 64 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x16xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x16xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x16xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x1xi32>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x1xi32> {
    %x = tensor.extract_slice %out[%i, %j, %k, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<?x?x?x1xi32> to tensor<1xi32>
    // expected-error@below {{expected tiles of at most 256 keys, got 512}}
    %y = attn.tile_status %rows rows, %c1 keys size 512 outs(%x) mask(%bb, %hh, %mm, %nn) {
      %keep = arith.cmpi sle, %nn, %mm : index
      attn.yield %keep : i1
    } : tensor<1xi32> -> tensor<1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %out[%i, %j, %k, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<1xi32> into tensor<?x?x?x1xi32>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x1xi32>
}

// -----

func.func @rows(%q: tensor<?x?x?x16xf16>) -> tensor<?x?x?x1xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %rows = arith.constant 65 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x16xf16>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x16xf16>
  %m = tensor.dim %q, %c2 : tensor<?x?x?x16xf16>
  %init = tensor.empty(%b, %h, %m) : tensor<?x?x?x1xi32>
  %o = scf.forall (%i, %j, %k) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 64) shared_outs(%out = %init) -> tensor<?x?x?x1xi32> {
    %x = tensor.extract_slice %out[%i, %j, %k, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<?x?x?x1xi32> to tensor<1xi32>
    // expected-error@below {{expected at most the grid's 64 rows, got 65}}
    %y = attn.tile_status %rows rows, %c1 keys size 64 outs(%x) mask(%bb, %hh, %mm, %nn) {
      %keep = arith.cmpi sle, %nn, %mm : index
      attn.yield %keep : i1
    } : tensor<1xi32> -> tensor<1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %out[%i, %j, %k, 0] [1, 1, 1, 1] [1, 1, 1, 1] : tensor<1xi32> into tensor<?x?x?x1xi32>
    }
  } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %o : tensor<?x?x?x1xi32>
}
