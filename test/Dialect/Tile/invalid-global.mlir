// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @global_c1(%q: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{expected one offset per dimension of 'memref<?x?xf32>', got 1}}
  %t = tile.load %q[%i] : memref<?x?xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @global_c1_store(%t: tensor<64x64xf32>, %o: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{expected one offset per dimension of 'memref<?x?xf32>', got 1}}
  tile.store %t to %o[%i] : tensor<64x64xf32>, memref<?x?xf32>
  return
}

// -----

func.func @global_c2(%q: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{expected the element type of 'memref<?x?xf32>', got 'bf16'}}
  %t = tile.load %q[%i, %i] : memref<?x?xf32> -> tensor<64x64xbf16>
  return
}

// -----

func.func @global_c2_gather(%q: memref<?xf32>, %i: tensor<64xindex>) {
  // expected-error@+1 {{expected the element type of 'memref<?xf32>', got 'i32'}}
  %t = tile.gather %q[%i] : memref<?xf32>, tensor<64xindex> -> tensor<64xi32>
  return
}

// -----

func.func @global_c3(%q: memref<?xf32>, %i: index) {
  // expected-error@+1 {{expected a tile of rank 1 or 2 that 'memref<?xf32>' can hold, got rank 2}}
  %t = tile.load %q[%i] : memref<?xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @global_c3_rank(%q: memref<?x?x?xf32>, %i: index) {
  // expected-error@+1 {{expected a tile of rank 1 or 2 that 'memref<?x?x?xf32>' can hold, got rank 3}}
  %t = tile.load %q[%i, %i, %i] : memref<?x?x?xf32> -> tensor<2x64x64xf32>
  return
}

// -----

func.func @gather_c1(%q: memref<?xf32>, %i: tensor<32xindex>) {
  // expected-error@+1 {{expected index or 'tensor<64xindex>' as an index, got 'tensor<32xindex>'}}
  %t = tile.gather %q[%i] : memref<?xf32>, tensor<32xindex> -> tensor<64xf32>
  return
}

// -----

func.func @global_c1_scatter_add(%d: memref<?x?xf32>, %i: index, %t: tensor<64xf32>, %keep: tensor<64xi1>) {
  // expected-error@+1 {{expected one offset per dimension of 'memref<?x?xf32>', got 1}}
  tile.scatter_add %t to %d[%i] where %keep : tensor<64xf32>, memref<?x?xf32>, index
  return
}

// -----

func.func @global_c2_scatter_add(%d: memref<?xbf16>, %i: index, %t: tensor<64xf32>, %keep: tensor<64xi1>) {
  // expected-error@+1 {{expected the element type of 'memref<?xbf16>', got 'f32'}}
  tile.scatter_add %t to %d[%i] where %keep : tensor<64xf32>, memref<?xbf16>, index
  return
}

// -----

func.func @scatter_add_c1(%d: memref<?xi32>, %i: index, %t: tensor<64xi32>, %keep: tensor<64xi1>) {
  // expected-error@+1 {{expected a tile of f32 to add to memory, got 'tensor<64xi32>'}}
  tile.scatter_add %t to %d[%i] where %keep : tensor<64xi32>, memref<?xi32>, index
  return
}

// -----

func.func @scatter_add_c2(%d: memref<?xf32>, %i: tensor<32xindex>, %t: tensor<64xf32>, %keep: tensor<64xi1>) {
  // expected-error@+1 {{expected index or 'tensor<64xindex>' as an index, got 'tensor<32xindex>'}}
  tile.scatter_add %t to %d[%i] where %keep : tensor<64xf32>, memref<?xf32>, tensor<32xindex>
  return
}

// -----

func.func @scatter_add_keep(%d: memref<?xf32>, %i: index, %t: tensor<64xf32>, %keep: tensor<32xi1>) {
  // expected-error@+1 {{failed to verify that keep is a tile of i1 like the value}}
  "tile.scatter_add"(%t, %d, %i, %keep) : (tensor<64xf32>, memref<?xf32>, index, tensor<32xi1>) -> ()
  return
}

// -----

func.func @no_columns(%q: memref<?x0xbf16>, %i: index) {
  // expected-error@+1 {{must be a tile (a tensor of static extents above 0 of floats, integers or indices), but got 'tensor<96x0xbf16>'}}
  %tile = tile.load %q[%i, %i] : memref<?x0xbf16> -> tensor<96x0xbf16>
  return
}
