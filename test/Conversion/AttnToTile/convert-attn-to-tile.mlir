// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// The grid becomes the kernel's; tensors become memrefs, results last.
// CHECK-LABEL: func.func @causal
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x?x?x128xbf16
// CHECK-SAME:    grid = {{\[\[}}#tile.extent<argument = 0, dim = 2, divisor = 128>], [#tile.extent<argument = 0, dim = 1>], [#tile.extent<argument = 0, dim = 0>]]
func.func @causal(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // Full tiles carry no mask.
  // CHECK:       scf.for
  // CHECK:         tile.load %[[Q]]
  // CHECK:         tile.mma {{.*}} {transpose_rhs}
  // CHECK-NOT:     tile.coord
  // CHECK:         tile.reduce max
  // CHECK:         math.exp2 {{.*}} : tensor<128x128xf32>
  // CHECK:         tile.reduce add
  // CHECK:         arith.truncf {{.*}} to tensor<128x128xbf16>
  // CHECK:         tile.mma
  // Tiles on the diagonal compare coordinates; those past N are masked too.
  // CHECK:       scf.for
  // CHECK:         tile.coord 0
  // CHECK:         tile.coord 1
  // CHECK:         arith.cmpi sle
  // CHECK:         arith.cmpi slt
  // CHECK:         arith.andi
  // CHECK:         arith.select
  // CHECK:       tile.store
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
    : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
