// RUN: attn-opt %s --attn-to-online="target=cuda pack=8" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// The way for calls of one part counts parts as the grid of the other does.
// CHECK-LABEL: func.func @attention_packed_whole(
// CHECK-SAME:    #plan.range<least = 0, most = 1, parts = <blocks = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 1, dim = 1>, #plan.extent<argument = 0, dim = 2, divisor = 8>], keys = #plan.extent<argument = 1, dim = 2, divisor = 320>, most = 64>>]
// The view of an argument is the argument, with plan.packed; its sizes are its own. The number of parts is a size of scratch.
// CHECK-LABEL: func.func @attention_packed_split(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 1>},
// CHECK-SAME:    %{{[a-z0-9]*}}: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>,
// CHECK-SAME:    %{{[a-z0-9]*}}: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>,
// CHECK-SAME:    %{{[a-z0-9]*}}: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 1>},
// CHECK-SAME:    %[[P:[a-z0-9]*]]: memref<?x?x?x?x128xf32, strided<[?, ?, ?, ?, 1]>> {tile.scratch = [#plan.parts<blocks = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 1, dim = 1>, #plan.extent<argument = 0, dim = 2, divisor = 8>], keys = #plan.extent<argument = 1, dim = 2, divisor = 320>, most = 64>, #plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 1, dim = 1>, #plan.extent<argument = 0, dim = 2, multiplier = 8>, 128]},
// CHECK-SAME:    plan.when = [
// CHECK-SAME:    tile.kernel = #tile.kernel<warpgroups = 1,
// CHECK:         %[[S:.*]] = memref.dim %{{.*}}, %c0 : memref<?x?x?x?xf32
// CHECK:         %[[PART:.*]] = arith.remui %block_id_x, %[[S]]
// CHECK:         %[[M:.*]] = memref.dim %[[Q]], %c2
// CHECK:         arith.muli %[[M]], %c8
// CHECK:         tile.load %[[Q]][%block_id_z, %block_id_y, %{{.*}}, %c0]
// CHECK:         tile.store %{{.*}} to %[[P]][%[[PART]], %block_id_z, %block_id_y, %{{.*}}, %c0]
// CHECK-LABEL: func.func @attention_packed_merge(
// CHECK-SAME:    %[[O:[a-z0-9]*]]: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 1>}, %{{[a-z0-9]*}}: memref<?x?x?x?x128xf32
// Up to sixteen parts are a turn, four at a time if the first of them is there.
// CHECK:         %[[PARTS:.*]] = memref.dim %{{.*}}, %c0 : memref<?x?x?x?xf32
// CHECK:         scf.for %[[S1:.*]] = %c0 to %[[PARTS]] step %c16
// CHECK-COUNT-8:   tile.load
// CHECK-NOT:       tile.load
// CHECK:           %[[FIRST:.*]] = arith.addi %[[S1]], %c4
// CHECK:           %[[THERE:.*]] = arith.cmpi slt, %[[FIRST]], %[[PARTS]]
// CHECK:           scf.if %[[THERE]] -> (tensor<4xf32>, tensor<4x128xf32>, tensor<4xf32>, tensor<4x128xf32>, tensor<4xf32>, tensor<4x128xf32>, tensor<4xf32>, tensor<4x128xf32>)
// CHECK-COUNT-8:     tile.load
// CHECK:         tile.store %{{.*}} to %[[O]][%block_id_z, %block_id_y, %{{.*}}, %c0]
// CHECK-LABEL: func.func @attention(
// CHECK-NOT:     plan.packed
// CHECK-NOT:     plan.when
func.func @attention(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
