// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// Three kernels. The first leaves two numbers for each row, neg_lse2 and -delta, in memory whose strides are multiples of 16 bytes,
// and no more.
// CHECK-LABEL: func.func @plain_rows
// CHECK-SAME:    memref<?x?x?xf32, strided<[?, ?, 1]>> {tile.scratch = [#plan.extent<argument = 5, dim = 0>, #plan.extent<argument = 5, dim = 1>, #plan.extent<argument = 5, dim = 2, divisor = 4, unit = 4>]}
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 4, dim = 2, divisor = 128>]
// CHECK-COUNT-2: tile.load {{.*}} -> tensor<128x64xbf16>
// CHECK:       %[[DELTA:.*]] = tile.reduce add {{.*}} -> tensor<128xf32>
// CHECK:       %[[NL:.*]] = arith.select {{.*}} tensor<128xf32>
// CHECK-NOT:   scf.if
// CHECK:       tile.store %[[NL]] to %arg9
// CHECK:       %[[MINUS:.*]] = arith.negf %[[DELTA]]
// CHECK:       tile.store %[[MINUS]] to %arg10
// CHECK-NOT:   tile.store

// The second owns rows; it reads their numbers once. P is one multiply-add away from the product; the end of the keys is masked
// in the last tile only.
// CHECK-LABEL: func.func @plain_query
// CHECK-SAME:    warpgroups = 2
// CHECK-DAG:   %[[MINUS:.*]] = tile.load %arg10{{.*}} -> tensor<128xf32>
// CHECK-DAG:   arith.negf %[[MINUS]]
// CHECK-DAG:   tile.load %arg9{{.*}} -> tensor<128xf32>
// CHECK:       scf.for
// CHECK:         %[[K:.*]] = tile.load %arg1{{.*}} -> tensor<128x64xbf16>
// CHECK:         %[[S:.*]] = tile.mma %{{.*}}, %[[K]] {transpose_rhs}
// CHECK:         %[[DP:.*]] = tile.mma {{.*}} {transpose_rhs}
// CHECK:         %[[E:.*]] = math.fma %[[S]]
// CHECK:         %[[P:.*]] = math.exp2 %[[E]]
// CHECK:         %[[D:.*]] = arith.subf %[[DP]]
// CHECK-NEXT:    %[[DS:.*]] = arith.mulf %[[P]], %[[D]]
// CHECK-NEXT:    %[[FACTOR:.*]] = arith.truncf %[[DS]]
// CHECK-NEXT:    %[[SUM:.*]] = tile.mma %[[FACTOR]], %[[K]]
// CHECK-NEXT:    scf.yield %[[SUM]]
// CHECK:       scf.for
// CHECK:         arith.cmpi slt
// CHECK:         arith.select
// CHECK:       arith.mulf {{.*}} tensor<128x64xf32>
// CHECK:       tile.store

// The third owns keys; heads of a group run one after the other. The numbers of rows lie along the columns: the product for dP starts
// with -delta, and neg_lse2 is read behind both products. The sum for values comes before the gradients of scores.
// CHECK-LABEL: func.func @plain_key_value
// CHECK-NOT:   arith.ceildivui
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK:           %[[Q:.*]] = tile.load %arg0{{.*}} -> tensor<128x64xbf16>
// CHECK:           %[[DO:.*]] = tile.load %arg3{{.*}} -> tensor<128x64xbf16>
// CHECK:           %[[MINUS:.*]] = tile.load_columns %arg10{{.*}} -> tensor<128x128xf32>
// CHECK:           %[[ST:.*]] = tile.mma %{{.*}}, %[[Q]] {transpose_rhs}
// CHECK:           %[[DPT:.*]] = tile.mma %{{.*}}, %[[DO]], %[[MINUS]] {transpose_rhs}
// CHECK:           %[[NL:.*]] = tile.load_columns %arg9{{.*}} -> tensor<128x128xf32>
// CHECK:           %[[E:.*]] = math.fma %[[ST]], %{{.*}}, %[[NL]]
// CHECK:           %[[PT:.*]] = math.exp2 %[[E]]
// CHECK-NEXT:      arith.truncf %[[PT]]
// CHECK-NEXT:      tile.mma {{.*}}, %[[DO]], %{{.*}}
// CHECK-NEXT:      %[[DST:.*]] = arith.mulf %[[PT]], %[[DPT]]
// CHECK-NEXT:      arith.truncf %[[DST]]
// CHECK-NEXT:      tile.mma {{.*}}, %[[Q]], %{{.*}}
// CHECK-NOT:     scf.for
func.func @plain(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r) -> (!x, !x, !x) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do : !x, !x, !x, !x, !r, !x -> d_query(!x) d_key(!x) d_value(!x)
  return %g#0, %g#1, %g#2 : !x, !x, !x
}

// Where a mask may drop a key in all rows, it may be anything: what no row keeps is cleared. Coordinates of rows that are not
// there are those of the last.
// CHECK-LABEL: func.func @causal_query
// CHECK:       scf.for
// CHECK-NOT:     tile.clear_unread
// CHECK:       scf.for
// CHECK:         %[[M:.*]] = tile.coord 0
// CHECK:         %[[LAST:.*]] = arith.minsi %[[M]]
// CHECK:         arith.cmpi sle, %{{.*}}, %[[LAST]]
// CHECK:         %[[KEPT:.*]] = arith.cmpf une
// CHECK:         arith.select %[[KEPT]]
// CHECK:         %[[CLEARED:.*]] = tile.clear_unread
// CHECK:         tile.mma %{{.*}}, %[[CLEARED]], %{{.*}}
// CHECK-LABEL: func.func @causal_key_value
// CHECK-NOT:   tile.clear_unread
func.func @causal(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r) -> (!x, !x, !x) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.causal<top_left>]
    : !x, !x, !x, !x, !r, !x -> d_query(!x) d_key(!x) d_value(!x)
  return %g#0, %g#1, %g#2 : !x, !x, !x
}

// The gradient of lse joins delta. What is not asked for has no kernel.
// CHECK-LABEL: func.func @lse_rows
// CHECK:       tile.reduce add
// CHECK:       tile.load {{.*}} -> tensor<128xf32>
// CHECK:       arith.subf {{.*}} tensor<128xf32>
// CHECK-LABEL: func.func @lse_query
// The derivative of a score is at the scaled product.
// CHECK:       arith.mulf {{.*}} tensor<128x{{.*}}xf32>
// CHECK:       math.tanh
// CHECK-NOT:   func.func
func.func @lse(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r, %dlse: !r) -> !x {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.softcap<15.0>] d_lse(%dlse : !r)
    : !x, !x, !x, !x, !r, !x -> d_query(!x)
  return %g : !x
}

// The gradient of a sink takes delta from the same memory.
// CHECK-LABEL: func.func @sink_rows
// CHECK:       arith.negf
// CHECK-LABEL: func.func @sink_sum
// CHECK:       tile.gather
// CHECK:       %[[MINUS:.*]] = tile.gather
// CHECK:       %[[DELTA:.*]] = arith.negf %[[MINUS]]
// CHECK:       arith.mulf %{{.*}}, %[[DELTA]]
func.func @sink(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r, %s: tensor<?xf32>) -> tensor<?xf32> {
  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do sink(%s : tensor<?xf32>)
    : !x, !x, !x, !x, !r, !x -> d_sink(tensor<?xf32>)
  return %g : tensor<?xf32>
}
