// RUN: attn-opt %s --convert-attn-to-tile --split-input-file --verify-diagnostics

// Steps that are not those which the passes before make.

func.func @elements(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xf16> to tensor<64x64xf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    // expected-error@below {{expected query, key and value of one element type, got 'bf16', 'f16' and 'f16'}}
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

func.func @columns(%q: tensor<2x2x128x?xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32, %d: index) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, %d] [1, 1, 1, 1] : tensor<2x2x128x?xbf16> to tensor<64x?xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    // expected-error@below {{expected static D and Dv, got}}
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x?xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

// The schedule has tiles of 64 keys: 36 of these would have no weight.
func.func @keys(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 100, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<100x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    // expected-error@below {{expected at most the 64 keys of a tile, got 'tensor<100x64xbf16>' and 'tensor<100x64xbf16>'}}
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<100x64xbf16>, tensor<100x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

func.func @rows(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 32, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<32x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<32x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
    %er = tensor.empty() : tensor<32xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<32xf32>) -> tensor<32xf32>
    // expected-error@below {{expected tiles of the grid's 64 rows, got 'tensor<32x64xf32>'}}
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<32x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<32x64xf32>, tensor<32xf32>, tensor<32xf32> -> tensor<32x64xf32>, tensor<32xf32>, tensor<32xf32>
    %out = tensor.empty() : tensor<32x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<32x64xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x64xbf16> -> tensor<32x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 32, 64] [1, 1, 1, 1] : tensor<32x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

func.func @wide(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xf64> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xf64>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xf64>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xf64>
    // expected-error@below {{expected an output of f16, bf16 or f32 on this target, got 'f64'}}
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf64> -> tensor<64x64xf64>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xf64> into tensor<2x2x128x64xf64>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xf64>
}

// -----

// Rows of heads lie apart.
func.func @heads_as_rows(%q: tensor<2x64x1x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    // expected-error@below {{expected a slice that drops leading dimensions only}}
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 64, 1, 64] [1, 1, 1, 1] : tensor<2x64x1x64xbf16> to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

func.func @every_other_row(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
    // expected-error@below {{expected a slice with strides of 1}}
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 2, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

// A tile is one number for all elements, or what was computed.
func.func @constant(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    // expected-error@below {{expected one number for all elements of a tile, got}}
    %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

func.func @unranked(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    // expected-error@below {{expected tensors of rows by static columns in a block, got 'tensor<2x2x2xf32>'}}
    %c = arith.constant dense<1.0> : tensor<2x2x2xf32>
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

func.func @constant_keys(%q: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %k = arith.constant dense<1.0> : tensor<64x64xbf16>
    // expected-error@below {{expected a slice of an argument, got one of a tile 'tensor<64x64xbf16>'}}
    %kt = tensor.extract_slice %k[0, 0] [32, 64] [1, 1] : tensor<64x64xbf16> to tensor<32x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %k into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

// The schedule has tiles of 64 keys: 36 of these would give nothing.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
func.func @gradient_keys(%q: !m, %k: !m, %rows: !r, %scale: f32) -> !m {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : !m
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (!m) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 100, 64] [1, 1, 1, 1] : !m to tensor<100x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    // expected-error@below {{expected at most the 64 rows of a tile, got 'tensor<100x64xbf16>'}}
    %s = attn.grad_query_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) outs(%acc) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<100x64xbf16>, tensor<100x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.grad_end %s outs(%out) : tensor<64x64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into !m
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !m
}

// -----

// The schedule has tiles of 64 keys: 36 of these would give nothing.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
func.func @gradient_columns(%q: !m, %k: !m, %rows: !r, %scale: f32, %d: index) -> !m {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : !m
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (!m) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, %d] [1, 1, 1, 1] : !m to tensor<64x?xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    // expected-error@below {{expected static D and Dv, got 'tensor<64x?xbf16>'}}
    %s = attn.grad_query_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) outs(%acc)
      : tensor<64x?xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x?xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.grad_end %s outs(%out) : tensor<64x64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into !m
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !m
}

// -----

// The schedule has tiles of 64 keys: 36 of these would give nothing.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
func.func @gradient_rows(%q: !m, %k: !m, %rows: !r, %scale: f32) -> !m {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : !m
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 128) shared_outs(%o = %init) -> (!m) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    // expected-error@below {{expected tiles of the grid's 128 rows, got 'tensor<64x64xf32>'}}
    %s = attn.grad_query_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) outs(%acc) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.grad_end %s outs(%out) : tensor<64x64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into !m
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !m
}

// -----

// Regions read arguments: an element of a tile is in another thread.
// The schedule has tiles of 64 keys: 36 of these would give nothing.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
func.func @score_of_a_tile(%q: !m, %k: !m, %rows: !r, %scale: f32) -> !m {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : !m
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (!m) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %c = arith.constant dense<1.0> : tensor<64x64xf32>
    %s = attn.grad_query_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) outs(%acc) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>} score(%x, %b, %h, %m, %n) {
      // expected-error@below {{expected an element of an argument, got one of a tile 'tensor<64x64xf32>'}}
      %y = tensor.extract %c[%b, %h] : tensor<64x64xf32>
      attn.yield %y : f32
    }
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.grad_end %s outs(%out) : tensor<64x64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into !m
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !m
}

// -----

// Blocks of the gradient of a captured tensor are of batches, heads and tiles of rows.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
func.func @captured(%q: !m, %k: !m, %rows: !r, %scale: f32) -> tensor<128xf32> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%init : tensor<128xf32>) -> tensor<128xf32>
  // expected-error@below {{expected a grid over (B, H, M tiles) that makes the gradient of a captured tensor alone, got 1 dimensions and 1 results}}
  %r = scf.forall (%t) = (0) to (128) step (64) shared_outs(%o = %f) -> (tensor<128xf32>) {
    %qt = tensor.extract_slice %q[0, 0, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %kt = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[0, 0, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %e = tensor.empty() : tensor<64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %s = attn.grad_captured_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) outs(%acc) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%t] [64] [1] : tensor<64xf32> into tensor<128xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<128xf32>
}

// -----

// A gradient starts with zeros.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
!x = tensor<64xbf16>
!y = tensor<64x64xbf16>
#schedule = #attn.schedule<block_m = 64, block_n = 64>
// expected-error@below {{expected the gradient of a captured tensor to start with zeros}}
func.func @captured_start(%q: !m, %k: !m, %rows: !r, %scale: f32, %w: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %d = tensor.dim %w, %c0 : tensor<?xf32>
  %init = tensor.empty(%d) : tensor<?xf32>
  %f = linalg.fill ins(%scale : f32) outs(%init : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %s = scf.for %n = %c0 to %c128 step %c64 iter_args(%acc = %o) -> (tensor<?xf32>) {
      %kt = tensor.extract_slice %k[%i, %j, %n, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
      %u = attn.grad_captured_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) at(%i, %j, %t, %n) outs(%acc) {attn.schedule = #schedule}
          score(%sc, %b, %h, %m, %nn) {
            %a = tensor.extract %w[%h] : tensor<?xf32>
            %v = arith.addf %sc, %a : f32
            attn.yield %v : f32
          } grad(%sc, %dt, %b, %h, %m, %nn) {
            attn.contribute %dt to %w[%h] : tensor<?xf32>
            attn.yield %dt : f32
          } : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<?xf32> -> tensor<?xf32>
      scf.yield %u : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[0] [%d] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

// Rows move with the blocks alone.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
!x = tensor<64xbf16>
!y = tensor<64x64xbf16>
#schedule = #attn.schedule<block_m = 64, block_n = 64>
func.func @captured_loop(%q: !m, %k: !m, %rows: !r, %scale: f32, %w: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %d = tensor.dim %w, %c0 : tensor<?xf32>
  %init = tensor.empty(%d) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%init : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %s = scf.for %n = %c0 to %c128 step %c64 iter_args(%acc = %o) -> (tensor<?xf32>) {
      %kt = tensor.extract_slice %k[%i, %j, %n, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
      // expected-error@below {{expected the rows of a block, got those of a loop inside of it}}
      %u = attn.grad_captured_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) at(%i, %j, %n, %n) outs(%acc) {attn.schedule = #schedule}
          score(%sc, %b, %h, %m, %nn) {
            %a = tensor.extract %w[%h] : tensor<?xf32>
            %v = arith.addf %sc, %a : f32
            attn.yield %v : f32
          } grad(%sc, %dt, %b, %h, %m, %nn) {
            attn.contribute %dt to %w[%h] : tensor<?xf32>
            attn.yield %dt : f32
          } : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<?xf32> -> tensor<?xf32>
      scf.yield %u : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[0] [%d] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

// All steps of a grid are of the same rows.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
!x = tensor<64xbf16>
!y = tensor<64x64xbf16>
#schedule = #attn.schedule<block_m = 64, block_n = 64>
func.func @captured_position(%q: !m, %k: !m, %rows: !r, %scale: f32, %w: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %d = tensor.dim %w, %c0 : tensor<?xf32>
  %init = tensor.empty(%d) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%init : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %s = scf.for %n = %c0 to %c128 step %c64 iter_args(%acc = %o) -> (tensor<?xf32>) {
      %kt = tensor.extract_slice %k[%i, %j, %n, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
      %u = attn.grad_captured_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) at(%i, %j, %t, %n) outs(%acc) {attn.schedule = #schedule}
          score(%sc, %b, %h, %m, %nn) {
            %a = tensor.extract %w[%h] : tensor<?xf32>
            %v = arith.addf %sc, %a : f32
            attn.yield %v : f32
          } grad(%sc, %dt, %b, %h, %m, %nn) {
            attn.contribute %dt to %w[%h] : tensor<?xf32>
            attn.yield %dt : f32
          } : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<?xf32> -> tensor<?xf32>
      // expected-error@below {{expected all steps of a grid at one position of their rows}}
      %u2 = attn.grad_captured_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) at(%i, %j, %c0, %n) outs(%u) {attn.schedule = #schedule}
          score(%sc, %b, %h, %m, %nn) {
            %a = tensor.extract %w[%h] : tensor<?xf32>
            %v = arith.addf %sc, %a : f32
            attn.yield %v : f32
          } grad(%sc, %dt, %b, %h, %m, %nn) {
            attn.contribute %dt to %w[%h] : tensor<?xf32>
            attn.yield %dt : f32
          } : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<?xf32> -> tensor<?xf32>
      scf.yield %u2 : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[0] [%d] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

// And they contribute alike.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
!x = tensor<64xbf16>
!y = tensor<64x64xbf16>
#schedule = #attn.schedule<block_m = 64, block_n = 64>
func.func @captured_contributions(%q: !m, %k: !m, %rows: !r, %scale: f32, %w: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %d = tensor.dim %w, %c0 : tensor<?xf32>
  %init = tensor.empty(%d) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%init : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %s = scf.for %n = %c0 to %c128 step %c64 iter_args(%acc = %o) -> (tensor<?xf32>) {
      %kt = tensor.extract_slice %k[%i, %j, %n, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
      %u = attn.grad_captured_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) at(%i, %j, %t, %n) outs(%acc) {attn.schedule = #schedule}
          score(%sc, %b, %h, %m, %nn) {
            %a = tensor.extract %w[%h] : tensor<?xf32>
            %v = arith.addf %sc, %a : f32
            attn.yield %v : f32
          } grad(%sc, %dt, %b, %h, %m, %nn) {
            attn.contribute %dt to %w[%h] : tensor<?xf32>
            attn.yield %dt : f32
          } : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<?xf32> -> tensor<?xf32>
      // expected-error@below {{expected the contributions of the grid's first step}}
      %u2 = attn.grad_captured_step %qt, %kt, %kt, %qt, %rt, %rt scale(%scale) at(%i, %j, %t, %n) outs(%u) {attn.schedule = #schedule}
          score(%sc, %b, %h, %m, %nn) {
            %a = tensor.extract %w[%h] : tensor<?xf32>
            %v = arith.addf %sc, %a : f32
            attn.yield %v : f32
          } grad(%sc, %dt, %b, %h, %m, %nn) {
            attn.contribute %dt to %w[%nn] : tensor<?xf32>
            attn.yield %dt : f32
          } : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<?xf32> -> tensor<?xf32>
      scf.yield %u2 : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[0] [%d] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
func.func @gradient_of_rows(%q: !m, %rows: !r, %d: index) -> !r {
  %init = tensor.empty() : !r
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (!r) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, %d] [1, 1, 1, 1] : !m to tensor<64x?xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %e = tensor.empty() : tensor<64xf32>
    // expected-error@below {{expected a static Dv, got 'tensor<64x?xbf16>'}}
    %7:2 = attn.grad_rows %qt, %qt, %rt outs(%e, %e) : tensor<64x?xbf16>, tensor<64x?xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>, tensor<64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %7#0 into %o[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<64xf32> into !r
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !r
}

// -----

// A tile is stored whole.
!m = tensor<2x2x128x64xbf16>
!r = tensor<2x2x128xf32>
func.func @half_a_tile(%q: !m, %rows: !r, %d: index) -> !r {
  %init = tensor.empty() : !r
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 128) shared_outs(%o = %init) -> (!r) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : !m to tensor<64x64xbf16>
    %rt = tensor.extract_slice %rows[%i, %j, %t] [1, 1, 64] [1, 1, 1] : !r to tensor<64xf32>
    %e = tensor.empty() : tensor<64xf32>
    %7:2 = attn.grad_rows %qt, %qt, %rt outs(%e, %e) : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>, tensor<64xf32>
    scf.forall.in_parallel {
      // expected-error@below {{expected to insert the 128 rows of a tile, got 'tensor<64xf32>'}}
      tensor.parallel_insert_slice %7#0 into %o[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<64xf32> into !r
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !r
}

// -----

func.func @merge_columns(%p: tensor<3x2x2x128x?xf32>, %l: tensor<3x2x2x128xf32>, %d: index) -> tensor<2x2x128x64xbf16> {
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %pt = tensor.extract_slice %p[0, %i, %j, %t, 0] [3, 1, 1, 64, %d] [1, 1, 1, 1, 1] : tensor<3x2x2x128x?xf32> to tensor<3x1x1x64x?xf32>
    %lt = tensor.extract_slice %l[0, %i, %j, %t] [3, 1, 1, 64] [1, 1, 1, 1] : tensor<3x2x2x128xf32> to tensor<3x1x1x64xf32>
    %e = tensor.empty() : tensor<1x1x64x64xbf16>
    // expected-error@below {{expected a static Dv, got 'tensor<3x1x1x64x?xf32>'}}
    %m = attn.merge %pt, %lt outs(%e) : tensor<3x1x1x64x?xf32>, tensor<3x1x1x64xf32>, tensor<1x1x64x64xbf16> -> tensor<1x1x64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %m into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

// RUN: attn-opt %s --convert-attn-to-tile --split-input-file --verify-diagnostics

// Steps that are not those which the passes before make.

func.func @keys_made_here(%q: tensor<2x2x128x64xbf16>, %k: tensor<2x2x128x64xbf16>, %scale: f32) -> tensor<2x2x128x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %init = tensor.empty() : tensor<2x2x128x64xbf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %init) -> (tensor<2x2x128x64xbf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %kt = arith.constant dense<1.0> : tensor<64x64xbf16>
    %e = tensor.empty() : tensor<64x64xf32>
    %acc = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %er = tensor.empty() : tensor<64xf32>
    %row = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
    // expected-error@below {{expected query, key and value to be slices of the kernel's arguments}}
    %s:3 = attn.online_attention %qt, %kt, %kt scale(%scale) outs(%acc, %row, %row) {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
    %out = tensor.empty() : tensor<64x64xbf16>
    %n = attn.normalize %s#0, %s#1, %s#2 outs(%out) : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<64x64xbf16> into tensor<2x2x128x64xbf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x64xbf16>
}

// -----

func.func @rows_in_a_loop(%o: tensor<2x2x128x64xbf16>, %lse: tensor<2x2x128xf32>, %d: index) -> tensor<2x2x128xf32> {
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%s = %lse) -> (tensor<2x2x128xf32>) {
    %ot = tensor.extract_slice %o[%i, %j, %t, 0] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<2x2x128x64xbf16> to tensor<64x64xbf16>
    %lt = tensor.extract_slice %lse[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<2x2x128xf32> to tensor<64xf32>
    %one = arith.constant dense<1.0> : tensor<64xf32>
    %c:2 = scf.for %x = %i to %d step %d iter_args(%a = %one, %b = %one) -> (tensor<64xf32>, tensor<64xf32>) {
      // expected-error@below {{expected it in the grid itself, got it in 'scf.for'}}
      %n:2 = attn.grad_rows %ot, %ot, %lt outs(%lt, %lt) : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>, tensor<64xf32>
      scf.yield %n#0, %n#1 : tensor<64xf32>, tensor<64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c#0 into %s[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<64xf32> into tensor<2x2x128xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128xf32>
}
