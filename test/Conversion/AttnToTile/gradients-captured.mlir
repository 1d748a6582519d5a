// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse -split-input-file | FileCheck %s

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// One says how far delta is off, from sums of weights and of dT over keys, and takes that off where weights add up to 1.
// CHECK-LABEL: func.func @per_key_delta
// CHECK:         %[[SUMS:.*]]:2 = scf.for {{.*}} -> (tensor<128xf32>, tensor<128xf32>) {
// CHECK:           %[[P:.*]] = math.exp2
// CHECK:           tile.reduce add %[[P]]
// CHECK:           tile.reduce add
// CHECK:         arith.divf
// CHECK:         %[[IS_WHOLE:.*]] = arith.ori %{{.*}} : tensor<128xi1>
// CHECK:         arith.select %[[IS_WHOLE]], %{{.*}} : tensor<128xi1>, tensor<128xf32>

// A kernel makes the gradient zeros.
// CHECK-LABEL: func.func @per_key_zeros
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 6, dim = 0, divisor = 64>, #plan.extent<argument = 6, dim = 1, divisor = 64>], [], []]
// CHECK:         tile.store %{{.*}} to %arg7[%{{.*}}, %{{.*}}] : tensor<64x64xf32>

// Turns of the loops over batches and tiles of rows are blocks, like the parts that blocks own elsewhere, here those of a head.
// Nothing is added behind the last row, nor where a weight is 0.
// CHECK-LABEL: func.func @per_key_captured
// CHECK-SAME:    warpgroups = 2
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 0, dim = 2, divisor = 128>], [#plan.extent<argument = 0, dim = 1>], [#plan.extent<argument = 0, dim = 0>]]
// CHECK-DAG:     %[[H:.*]] = gpu.block_id y
// CHECK:         scf.for
// CHECK-COUNT-2:   tile.mma {{.*}} {transpose_rhs}
// CHECK:           %[[N:.*]] = tile.coord 1
// CHECK:           %[[P:.*]] = math.exp2
// CHECK:           %[[SOME:.*]] = arith.cmpf une, %[[P]]
// CHECK:           %[[ROW:.*]] = arith.cmpi slt
// CHECK:           %[[ADDED:.*]] = arith.andi %[[SOME]], %[[ROW]]
// CHECK:           tile.scatter_add %{{.*}} to %arg7[%[[H]], %[[N]]] where %[[ADDED]]
// CHECK-SAME:        tensor<128x[[KEYS:[0-9]+]]xf32>, memref<?x?xf32, {{.*}}>, index, tensor<128x[[KEYS]]xindex>
// CHECK-NOT:     tile.store
// CHECK:         return
func.func @per_key(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !r, %do: !x, %x: tensor<?x?xbf16>) -> tensor<?x?xf32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%x : tensor<?x?xbf16>) score(%s, %b, %h, %m, %n) {
    %y = tensor.extract %x[%h, %n] : tensor<?x?xbf16>
    %z = arith.extf %y : bf16 to f32
    %t = arith.addf %s, %z : f32
    attn.yield %t : f32
  } : !x, !x, !x, !x, !r, !x -> d_wrt(tensor<?x?xf32>)
  return %g : tensor<?x?xf32>
}

// -----

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// What no index says the key of is summed along rows, by lanes, and added behind the loops.
// CHECK-LABEL: func.func @per_row_captured
// CHECK:         %[[SUM:.*]] = scf.for {{.*}} -> (tensor<128x4xf32>)
// CHECK:           tile.reduce add {{.*}} -> tensor<128x4xf32>
// CHECK-NOT:       tile.scatter_add
// CHECK:         scf.for {{.*}} = %[[SUM]]) -> (tensor<128x4xf32>)
// CHECK:           tile.reduce add {{.*}} -> tensor<128x4xf32>
// CHECK-NOT:       tile.scatter_add
// CHECK:         %[[ROWS:.*]] = tile.reduce add {{.*}} : tensor<128x4xf32> -> tensor<128xf32>
// CHECK:         tile.scatter_add %[[ROWS]] to %arg7[%{{.*}}, %{{.*}}] where %{{.*}} : tensor<128xf32>, memref<?x?xf32, {{.*}}>, index, tensor<128xindex>
func.func @per_row(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !r, %do: !x, %x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%x : tensor<?x?xf32>) score(%s, %b, %h, %m, %n) {
    %y = tensor.extract %x[%h, %m] : tensor<?x?xf32>
    %t = arith.addf %s, %y : f32
    attn.yield %t : f32
  } : !x, !x, !x, !x, !r, !x -> d_wrt(tensor<?x?xf32>)
  return %g : tensor<?x?xf32>
}

// -----

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// A number has no part that a block could own, and one place. A mask has steps of its own, which go on with the sum.
// CHECK-LABEL: func.func @one_zeros
// CHECK:         memref.store %{{.*}}, %arg7[] : memref<f32, strided<[]>>
// CHECK-LABEL: func.func @one_captured
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 0, dim = 2, divisor = 128>], [#plan.extent<argument = 0, dim = 1>], [#plan.extent<argument = 0, dim = 0>]]
// CHECK:         %[[SUM:.*]] = scf.for {{.*}} -> (tensor<128x4xf32>)
// CHECK:         scf.for {{.*}} = %[[SUM]]) -> (tensor<128x4xf32>)
// CHECK:         tile.scatter_add %{{.*}} to %arg7[] where %{{.*}} : tensor<128xf32>, memref<f32, strided<[]>>
func.func @one(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !r, %do: !x, %x: tensor<f32>) -> tensor<f32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%x : tensor<f32>) score(%s, %b, %h, %m, %n) {
    %y = tensor.extract %x[] : tensor<f32>
    %t = arith.mulf %s, %y : f32
    attn.yield %t : f32
  } mask(%b, %h, %m, %n) {
    %keep = arith.cmpi sle, %n, %m : index
    attn.yield %keep : i1
  } : !x, !x, !x, !x, !r, !x -> d_wrt(tensor<f32>)
  return %g : tensor<f32>
}

// -----

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// What depends on the distance alone is one place for a diagonal, also where a table of distances says which: its elements are summed first.
// Zeros say what is not added.
// CHECK-LABEL: func.func @per_distance_captured
// CHECK:         %[[ADDED:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<128x[[KEYS:[0-9]+]]xi1>
// CHECK:         %[[ADDENDS:.*]] = arith.select %[[ADDED]], %{{.*}}, %{{.*}} : tensor<128x[[KEYS]]xi1>, tensor<128x[[KEYS]]xf32>
// CHECK:         %[[SUMS:.*]] = tile.sum_diagonals %[[ADDENDS]] : tensor<128x[[KEYS]]xf32>
// CHECK:         %[[SOME:.*]] = arith.cmpf une, %[[SUMS]], %{{.*}}
// CHECK:         tile.scatter_add %[[SUMS]] to %{{.*}} where %[[SOME]]
func.func @per_distance(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !r, %do: !x, %x: tensor<?x?xf32>, %bucket: tensor<?xi32>) -> tensor<?x?xf32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%x : tensor<?x?xf32>) score(%s, %b, %h, %m, %n) {
    %c0 = arith.constant 0 : index
    %c99 = arith.constant 99 : index
    %m0 = arith.addi %m, %c99 : index
    %m1 = arith.index_cast %m0 : index to i32
    %n1 = arith.index_cast %n : index to i32
    %is_ahead = arith.cmpi slt, %m1, %n1 : i32
    %d = arith.subi %m1, %n1 : i32
    %d0 = arith.index_cast %d : i32 to index
    %d1 = arith.select %is_ahead, %c0, %d0 : index
    %d2 = arith.minsi %d1, %c99 : index
    %i = tensor.extract %bucket[%d2] : tensor<?xi32>
    %j = arith.index_cast %i : i32 to index
    %y = tensor.extract %x[%h, %j] : tensor<?x?xf32>
    %t = arith.addf %s, %y : f32
    attn.yield %t : f32
  } : !x, !x, !x, !x, !r, !x -> d_wrt(tensor<?x?xf32>)
  return %g : tensor<?x?xf32>
}

// -----

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// Sums of positions, and distances that wrap, are others along a diagonal.
// CHECK-LABEL: func.func @per_sum_captured
// CHECK-NOT:     tile.sum_diagonals
// CHECK:         tile.scatter_add
// CHECK-LABEL: func.func @per_wrapped_captured
// CHECK-NOT:     tile.sum_diagonals
// CHECK:         tile.scatter_add
func.func @per_sum(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !r, %do: !x, %x: tensor<?xf32>) -> tensor<?xf32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%x : tensor<?xf32>) score(%s, %b, %h, %m, %n) {
    %i = arith.addi %m, %n : index
    %y = tensor.extract %x[%i] : tensor<?xf32>
    %t = arith.addf %s, %y : f32
    attn.yield %t : f32
  } : !x, !x, !x, !x, !r, !x -> d_wrt(tensor<?xf32>)
  return %g : tensor<?xf32>
}
func.func @per_wrapped(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !r, %do: !x, %x: tensor<?xf32>) -> tensor<?xf32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%x : tensor<?xf32>) score(%s, %b, %h, %m, %n) {
    %m1 = arith.index_cast %m : index to i8
    %n1 = arith.index_cast %n : index to i8
    %is_ahead = arith.cmpi slt, %m1, %n1 : i8
    %i = arith.index_castui %is_ahead : i1 to index
    %y = tensor.extract %x[%i] : tensor<?xf32>
    %t = arith.addf %s, %y : f32
    attn.yield %t : f32
  } : !x, !x, !x, !x, !r, !x -> d_wrt(tensor<?xf32>)
  return %g : tensor<?xf32>
}

// -----

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// Nothing is read, so that zeros are all there is.
// CHECK-LABEL: func.func @nothing_zeros
// CHECK:         tile.store
// CHECK-NOT:     func.func
func.func @nothing(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !r, %do: !x, %x: tensor<?xf32>) -> tensor<?xf32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%x : tensor<?xf32>)
      : !x, !x, !x, !x, !r, !x -> d_wrt(tensor<?xf32>)
  return %g : tensor<?xf32>
}
