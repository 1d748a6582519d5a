// RUN: attn-opt %s --attn-to-online="target=cuda fused=true" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

!x = tensor<?x?x?x64xbf16>
!y = tensor<?x?x?x128xbf16>
!z = tensor<?x?x?x96xbf16>
!r = tensor<?x?x?xf32>

// Blocks that own keys have dS^T: dQ is a product more, with the rows of all products, which is added to a sum in f32 by tiles of
// rows. The kernel of numbers by row starts the sum with zeros: a block makes those tiles whose first rows it owns. The kernel that owned
// rows scales and rounds it.
// CHECK-LABEL: func.func @rows_rows
// CHECK-SAME:    memref<?x?x?x128x64xf32, strided<[?, ?, 8192, 64, 1]>> {tile.scratch = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 0, dim = 1>, #plan.extent<argument = 0, dim = 2, divisor = 128>, 128, 64]}
// CHECK:         %[[ROW:.*]] = arith.muli %{{.*}}, %c128
// CHECK-DAG:     %[[END:.*]] = arith.addi %[[ROW]], %c128
// CHECK-DAG:     %[[TILES:.*]] = memref.dim %arg11, %c2
// CHECK-DAG:     %[[FIRST:.*]] = arith.ceildivui %[[ROW]], %c128
// CHECK-DAG:     %[[NEXT:.*]] = arith.ceildivui %[[END]], %c128
// CHECK-DAG:     %[[LAST:.*]] = arith.minui %[[NEXT]], %[[TILES]]
// CHECK:         scf.for %[[TILE:.*]] = %[[FIRST]] to %[[LAST]] step %c1
// CHECK:           tile.store %{{.*}} to %arg11[%{{.*}}, %{{.*}}, %[[TILE]], %c0, %c0] : tensor<128x64xf32>
// CHECK:         tile.reduce add
// CHECK-LABEL: func.func @rows_key_value
// CHECK-SAME:    memref<?x?x?x128x64xf32, strided<[?, ?, 8192, 64, 1]>> {tile.fragments})
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[K:.*]] = tile.load %arg1{{.*}} -> tensor<128x64xbf16>
// CHECK-COUNT-2:     tile.load_columns
// CHECK:             %[[X:.*]] = math.fma %{{.*}} : tensor<128x128xf32>
// CHECK:             %[[ABS:.*]] = math.absf %[[X]]
// CHECK:             %[[LEAST:.*]] = arith.negf %[[ABS]]
// CHECK:             %[[P:.*]] = math.exp2 %[[LEAST]]
// CHECK:             %[[FACTOR:.*]] = arith.truncf %[[P]]
// CHECK:             arith.extf %[[FACTOR]]
// CHECK:             %[[DS:.*]] = arith.truncf
// CHECK:             %[[DQ:.*]] = tile.mma %[[DS]], %[[K]] {transpose_lhs} : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
// CHECK:             %[[TILE:.*]] = arith.divui %{{.*}}, %c128
// CHECK:             tile.store %[[DQ]] to %{{.*}}[%{{.*}}, %{{.*}}, %[[TILE]], %c0, %c0] {add}
// CHECK-LABEL: func.func @rows_query
// CHECK-NOT:     scf.for
// CHECK-NOT:     tile.mma
// CHECK:         %[[SUM:.*]] = tile.gather {{.*}} -> tensor<128x64xf32>
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[SUM]]
// CHECK:         %[[ROUND:.*]] = arith.truncf %[[SCALED]]
// CHECK:         tile.store %[[ROUND]] to %arg6
func.func @rows(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r) -> (!x, !x, !x) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do : !x, !x, !x, !x, !r, !x -> d_query(!x) d_key(!x) d_value(!x)
  return %g#0, %g#1, %g#2 : !x, !x, !x
}

// Where D fills the rows of all products, the product is dQ^T. Keys that no row keeps may be anything, and dS K multiplies them with
// zeros: what is no number becomes zero, once.
// CHECK-LABEL: func.func @columns_rows
// CHECK:         arith.ceildivui %{{.*}}, %c64
// CHECK-LABEL: func.func @columns_key_value
// CHECK-SAME:    memref<?x?x?x128x64xf32, strided<[?, ?, 8192, 64, 1]>>
// CHECK:         %[[INF:.*]] = arith.cmpf olt, %{{.*}} : tensor<128x128xf32>
// CHECK:         %[[FINITE:.*]] = arith.select %[[INF]]
// CHECK:         %[[KEYS:.*]] = arith.truncf %[[FINITE]]
// CHECK:         scf.for
// CHECK:           tile.mma %[[KEYS]], %{{.*}} {transpose_lhs} : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
// CHECK-LABEL: func.func @columns_query
// CHECK:         tile.gather {{.*}} -> tensor<128x128xf32>
func.func @columns(%q: !y, %k: !y, %v: !y, %do: !y, %o: !y, %lse: !r) -> (!y, !y, !y) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.causal<top_left>]
      : !y, !y, !y, !y, !r, !y -> d_query(!y) d_key(!y) d_value(!y)
  return %g#0, %g#1, %g#2 : !y, !y, !y
}

// Fewer columns are the first rows of the product: keys have zeros behind them, and memory has no rows for more.
// CHECK-LABEL: func.func @narrow_rows
// CHECK-SAME:    memref<?x?x?x96x64xf32, strided<[?, ?, 6144, 64, 1]>> {tile.scratch = {{.*}}, 96, 64]}
// CHECK:           tile.store %{{.*}} to %arg11[%{{.*}}] : tensor<128x64xf32>
// CHECK-LABEL: func.func @narrow_key_value
// CHECK-SAME:    memref<?x?x?x96x64xf32, strided<[?, ?, 6144, 64, 1]>> {tile.fragments})
// CHECK-NOT:     arith.cmpf olt
// CHECK:         %[[KEYS:.*]] = tile.load %arg1{{.*}} -> tensor<128x128xbf16>
// CHECK:         scf.for
// CHECK:           tile.mma %{{.*}} {transpose_rhs} : tensor<128x96xbf16>, tensor<64x96xbf16> -> tensor<128x64xf32>
// CHECK:           %[[DQ:.*]] = tile.mma %[[KEYS]], %{{.*}} {transpose_lhs} : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
// CHECK:           tile.store %[[DQ]] to %{{.*}} {add} : tensor<128x64xf32>, memref<?x?x?x96x64xf32
// CHECK-LABEL: func.func @narrow_query
// CHECK:         tile.gather {{.*}} -> tensor<128x96xf32>
func.func @narrow(%q: !z, %k: !z, %v: !z, %do: !z, %o: !z, %lse: !r) -> (!z, !z, !z) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do : !z, !z, !z, !z, !r, !z -> d_query(!z) d_key(!z) d_value(!z)
  return %g#0, %g#1, %g#2 : !z, !z, !z
}

// Another block than those of the rule: two passes.
// CHECK-LABEL: func.func @other_query
// CHECK:         tile.mma
// CHECK-LABEL: func.func @other_key_value
// CHECK-NOT:     {add}
func.func @other(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r) -> (!x, !x, !x) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do {attn.schedule = #attn.schedule<block_m = 64, block_n = 128, stages = 2, consumers = 1>}
      : !x, !x, !x, !x, !r, !x -> d_query(!x) d_key(!x) d_value(!x)
  return %g#0, %g#1, %g#2 : !x, !x, !x
}

// A mask that keeps two ranges of keys would take four loops, for which a thread has no registers.
// CHECK-LABEL: func.func @holes_key_value
// CHECK-NOT:     {add}
func.func @holes(%q: !y, %k: !y, %v: !y, %do: !y, %o: !y, %lse: !r) -> (!y, !y, !y) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do
      mask(%b, %h, %m, %n) {
        %x = arith.cmpi ne, %m, %n : index
        attn.yield %x : i1
      } : !y, !y, !y, !y, !r, !y -> d_query(!y) d_key(!y) d_value(!y)
  return %g#0, %g#1, %g#2 : !y, !y, !y
}
