// RUN: attn-opt %s --attn-to-online="target=cuda splits=4" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// A kernel for each grid. What the first leaves for the second is scratch, behind the arguments and results; the first says how
// large it is. Parts share x with the tiles of rows.
// CHECK-LABEL: func.func @causal_split
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x?x?x128xbf16, {{[^%]*}}, %[[K:[^:]*]]: memref<?x?x?x128xbf16
// CHECK-SAME:    %[[PARTIAL:[^:]*]]: memref<4x?x?x?x128xf32, strided<[?, ?, ?, ?, 1]>> {tile.scratch = [4, #plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 0, dim = 1>, #plan.extent<argument = 0, dim = 2>, 128]}
// CHECK-SAME:    %[[LSE:[^:]*]]: memref<4x?x?x?xf32, strided<[?, ?, ?, 1]>> {tile.scratch = [4, #plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 0, dim = 1>, #plan.extent<argument = 0, dim = 2>]}
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 0, dim = 2, divisor = 128>, 4], [#plan.extent<argument = 0, dim = 1>], [#plan.extent<argument = 0, dim = 0>]]
// CHECK:       %[[X:.*]] = gpu.block_id x
// CHECK:       %[[PART:.*]] = arith.remui %[[X]], %c4
// CHECK:       arith.divui %[[X]], %c4
// Keys of the part only: positions and the mask's coordinates start where it does.
// CHECK:       %[[BEFORE:.*]] = affine.min #{{.*}}()[%[[PART]], %{{.*}}]
// CHECK:       %[[BEGIN:.*]] = arith.minui %[[BEFORE]],
// CHECK:       scf.if
// CHECK:         %[[ORIGIN:.*]] = affine.apply #{{.*}}()[%[[BEGIN]], %[[LAST:.*]]]
// CHECK:         %[[N:.*]] = arith.addi %[[BEGIN]], %[[LAST]]
// CHECK:         %[[FIRST:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK:         tile.load %[[K]][%{{.*}}, %{{.*}}, %[[FIRST]], %c0]
// CHECK:       tile.store %{{.*}} to %[[PARTIAL]][%[[PART]], {{.*}} : tensor<128x128xf32>
// CHECK:       tile.store %{{.*}} to %[[LSE]][%[[PART]], {{.*}} : tensor<128xf32>

// CHECK-LABEL: func.func @causal_merge
// CHECK-SAME:    %[[O:[^:]*]]: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>, %[[PARTIAL:[^:]*]]: memref<4x?x?x?x128xf32, strided<[?, ?, ?, ?, 1]>>, %[[LSE:[^:]*]]: memref<4x?x?x?xf32, strided<[?, ?, ?, 1]>>)
// CHECK-SAME:    tile.kernel = #tile.kernel<warpgroups = 1, grid = {{\[\[}}#plan.extent<argument = 0, dim = 2, divisor = 4>], [#plan.extent<argument = 0, dim = 1>], [#plan.extent<argument = 0, dim = 0>]]
// Four parts are one turn. All loads come first.
// CHECK:       tile.load %[[LSE]][%c0, {{.*}} -> tensor<4xf32>
// CHECK-NEXT:  tile.load %[[PARTIAL]][%c0, {{.*}} -> tensor<4x128xf32>
// CHECK-NEXT:  %[[LSE1:.*]] = tile.load %[[LSE]][%c1, {{.*}} -> tensor<4xf32>
// CHECK-NEXT:  %[[VALUES1:.*]] = tile.load %[[PARTIAL]][%c1, {{.*}} -> tensor<4x128xf32>
// CHECK-NEXT:  tile.load %[[LSE]][%c2,
// CHECK-NEXT:  tile.load %[[PARTIAL]][%c2,
// CHECK-NEXT:  %[[LSE3:.*]] = tile.load %[[LSE]][%c3,
// CHECK-NEXT:  tile.load %[[PARTIAL]][%c3,
// CHECK:       %[[MAX:.*]] = arith.maximumf %{{.*}}, %[[LSE3]]
// CHECK:       %[[NOTHING:.*]] = arith.cmpf oeq, %[[MAX]]
// CHECK:       %[[OFFSET:.*]] = arith.select %[[NOTHING]]
// CHECK:       arith.subf %[[LSE1]], %[[OFFSET]]
// CHECK:       %[[WEIGHT:.*]] = math.exp2
// CHECK:       %[[TOTAL:.*]] = arith.addf %{{.*}}, %[[WEIGHT]]
// CHECK:       %[[ADDED:.*]] = math.fma %[[VALUES1]]
// What a part that kept nothing left is not added.
// CHECK:       arith.select %{{.*}}, %{{.*}}, %[[ADDED]]
// CHECK:       arith.addf %[[TOTAL]]
// CHECK:       %[[INVERSE:.*]] = arith.divf
// CHECK:       arith.select %[[NOTHING]], %{{.*}}, %[[INVERSE]]
// CHECK:       tile.store %{{.*}} to %[[O]]
// CHECK-NOT:   func.func @causal(
func.func @causal(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
    : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// Wide rows are one tile too. Names that are taken are left to their owners.
// CHECK-LABEL: func.func @wide_split(
// CHECK-LABEL: func.func @wide_merge_{{[0-9]+}}(
// CHECK:       tile.load {{.*}} -> tensor<4x256xf32>
// CHECK:       tile.store {{.*}} : tensor<4x256xbf16>
// CHECK:       tile.store {{.*}} : tensor<4xf32>
func.func @wide(%q: tensor<1x2x300x256xbf16>, %k: tensor<1x2x?x256xbf16>, %v: tensor<1x2x?x256xbf16>) -> (tensor<1x2x300x256xbf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.attention %q, %k, %v
    : tensor<1x2x300x256xbf16>, tensor<1x2x?x256xbf16>, tensor<1x2x?x256xbf16> -> tensor<1x2x300x256xbf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x256xbf16>, tensor<1x2x300xf32>
}
func.func private @wide_merge()

// Attention on attention: what the first leaves is scratch in the type of its result.
// CHECK-LABEL: func.func @chain_split(
// CHECK-LABEL: func.func @chain_merge(
// CHECK-SAME:    memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>> {tile.scratch =
// CHECK-LABEL: func.func @chain_split_{{[0-9]+}}(
// CHECK-LABEL: func.func @chain_merge_{{[0-9]+}}(
func.func @chain(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %x = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  %o = attn.attention %x, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
