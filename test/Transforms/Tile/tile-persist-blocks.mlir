// RUN: attn-opt %s --tile-persist-blocks --cse --split-input-file | FileCheck %s
// RUN: attn-opt %s --tile-persist-blocks --canonicalize --cse --verify-roundtrip --split-input-file -o /dev/null

// The body runs once for each block that the grid had; what is the same for all of them stays in front. Pieces go round,
// x fastest.
// CHECK-LABEL: func.func @even
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x?x?x64xbf16>
// CHECK-SAME:    #tile.kernel<warpgroups = 2, grid = {{\[}}[#plan.multiprocessors<blocks = 1>]], schedule = <stages = 2>>
func.func @even(%q: memref<?x?x?x64xbf16>, %n: index)
    attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[#plan.extent<argument = 0, dim = 2, divisor = 128>],
                                                                   [#plan.extent<argument = 0, dim = 1>],
                                                                   [#plan.extent<argument = 0, dim = 0>]], schedule = <stages = 2, stay = true>>} {
  // CHECK:       %[[M:.*]] = memref.dim %[[Q]], %c2
  // CHECK:       %[[TILES:.*]] = arith.ceildivui %[[M]], %c128
  // CHECK:       %[[H:.*]] = memref.dim %[[Q]], %c1
  // CHECK:       %[[B:.*]] = memref.dim %[[Q]], %c0
  // CHECK:       %[[HEADS:.*]] = arith.muli %[[H]], %[[B]]
  // CHECK:       %[[BLOCK:.*]] = gpu.block_id x
  // CHECK:       %[[BLOCKS:.*]] = gpu.grid_dim x
  // CHECK:       %[[PIECES:.*]] = arith.muli %[[TILES]], %[[HEADS]]
  // CHECK:       %[[SHARE:.*]] = arith.divui %{{.*}}, %[[BLOCKS]]
  // CHECK:       arith.addi %arg1, %c7
  // CHECK:       scf.for %[[NUMBER:.*]] = %{{.*}} to %[[SHARE]] step
  // CHECK:         %[[BEFORE:.*]] = arith.muli %[[NUMBER]], %[[BLOCKS]]
  // CHECK:         %[[PIECE:.*]] = arith.addi %[[BEFORE]], %[[BLOCK]]
  // CHECK:         %[[X:.*]] = arith.remui %[[PIECE]], %[[TILES]]
  // CHECK:         %[[HEAD:.*]] = arith.divui %[[PIECE]], %[[TILES]]
  // CHECK:         %[[Y:.*]] = arith.remui %[[HEAD]], %[[H]]
  // CHECK:         %[[Z:.*]] = arith.divui %[[HEAD]], %[[H]]
  %c7 = arith.constant 7 : index
  %same = arith.addi %n, %c7 : index
  %x = gpu.block_id x
  %y = gpu.block_id y
  %z = gpu.block_id z
  %c0 = arith.constant 0 : index
  // CHECK:         tile.load %[[Q]][%[[Z]], %[[Y]], %[[X]],
  // CHECK:         tile.store
  %tile = tile.load %q[%z, %y, %x, %same] : memref<?x?x?x64xbf16> -> tensor<128x64xbf16>
  tile.store %tile to %q[%z, %y, %x, %c0] : tensor<128x64xbf16>, memref<?x?x?x64xbf16>
  // CHECK:       }
  // CHECK-NEXT:  return
  return
}

// -----

// Where x bounds a loop, pairs from both ends come first: whole rounds of them where heads are long, those of whole heads
// where they are short, none where blocks are as many as pieces. The x that are left come last, in rounds that go
// backwards and forwards.
// CHECK-LABEL: func.func @uneven
func.func @uneven(%q: memref<?x64xbf16>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>]], schedule = <stay = true>>} {
  // CHECK:       %[[TILES:.*]] = arith.ceildivui
  // CHECK:       %[[MOST:.*]] = arith.divui %[[TILES]], %c2
  // CHECK:       %[[UNEVEN:.*]] = arith.remui %[[MOST]], %[[BLOCKS:.*]] : index
  // CHECK:       %[[WHOLE:.*]] = arith.subi %[[MOST]], %[[UNEVEN]]
  // CHECK:       %[[LONG:.*]] = arith.cmpi ugt, %[[TILES]], %c15
  // CHECK:       %[[FILLS:.*]] = arith.cmpi ugt, %[[WHOLE]], %c0
  // CHECK:       %[[MANY:.*]] = arith.cmpi ult, %[[BLOCKS]], %[[TILES]]
  // CHECK:       %[[OF_SHORT:.*]] = arith.select %[[MANY]], %[[MOST]], %c0
  // CHECK:       %[[IS_LONG:.*]] = arith.andi %[[LONG]], %[[FILLS]]
  // CHECK:       %[[PAIRS:.*]] = arith.select %[[IS_LONG]], %[[WHOLE]], %[[OF_SHORT]]
  // CHECK:       %[[PAIRED:.*]] = arith.muli %{{.*}}, %c2
  // CHECK:       scf.for %[[NUMBER:.*]] =
  // CHECK:         %[[IS_PAIR:.*]] = arith.cmpi ult, %[[NUMBER]], %[[PAIRED]]
  // CHECK:         %[[IS_SECOND:.*]] = arith.cmpi eq
  // CHECK:         %[[PLACE:.*]] = arith.select %[[IS_PAIR]], %[[BLOCK:[^,]*]], %{{.*}}
  // CHECK:         %[[OF_HEAD:.*]] = arith.divui
  // CHECK:         %[[FROM_BEGIN:.*]] = arith.remui
  // CHECK:         %[[FROM_END:.*]] = arith.subi %{{.*}}, %[[FROM_BEGIN]]
  // CHECK:         %[[OF_PAIR:.*]] = arith.select %[[IS_SECOND]], %[[FROM_END]], %[[FROM_BEGIN]]
  // CHECK:         %[[SINGLE:.*]] = arith.addi %{{.*}}, %[[OF_HEAD]]
  // CHECK:         %[[X:.*]] = arith.select %[[IS_PAIR]], %[[OF_PAIR]], %[[SINGLE]]
  // CHECK:         scf.for %{{.*}} = %{{.*}} to %[[X]]
  %x = gpu.block_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %x step %c1 {
    %tile = tile.load %q[%i, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
    tile.store %tile to %q[%x, %c0] : tensor<64x64xbf16>, memref<?x64xbf16>
  }
  return
}

// -----

// A branch counts as a loop does; factors of a dimension multiply, and a dimension that is not there has one.
// CHECK-LABEL: func.func @parts
func.func @parts(%q: memref<?x64xbf16>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>, 3]], schedule = <stay = true>>} {
  // CHECK:       %[[TILES:.*]] = arith.ceildivui %{{.*}}, %c64
  // CHECK:       %[[ALL:.*]] = arith.muli %[[TILES]], %c3
  // CHECK:       arith.divui %[[ALL]], %c2
  // CHECK:       scf.for
  // CHECK:         scf.if
  // CHECK:           tile.store
  %x = gpu.block_id x
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %part = arith.remui %x, %c3 : index
  %first = arith.cmpi eq, %part, %c0 : index
  scf.if %first {
    %tile = tile.load %q[%x, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
    tile.store %tile to %q[%x, %c0] : tensor<64x64xbf16>, memref<?x64xbf16>
  }
  return
}

// -----

// Others stay as they are.
// CHECK-LABEL: func.func @goes
// CHECK-SAME:    grid = {{\[}}[3]]
// CHECK-NOT:   scf.for
func.func @goes(%q: memref<?x64xbf16>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[3]]>} {
  %x = gpu.block_id x
  %c0 = arith.constant 0 : index
  %tile = tile.load %q[%x, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  tile.store %tile to %q[%x, %c0] : tensor<64x64xbf16>, memref<?x64xbf16>
  return
}

// -----

// Rows that are heads too.
// CHECK-LABEL: func.func @packed
// CHECK:       %[[M:.*]] = memref.dim %{{.*}}, %c2
// CHECK:       %[[ROWS:.*]] = arith.muli %[[M]], %c8
// CHECK:       arith.ceildivui %[[ROWS]], %c64
func.func @packed(%q: memref<?x?x?x64xbf16>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 2, divisor = 64, multiplier = 8>]], schedule = <stay = true>>} {
  %x = gpu.block_id x
  %c0 = arith.constant 0 : index
  %tile = tile.load %q[%c0, %c0, %x, %c0] : memref<?x?x?x64xbf16> -> tensor<64x64xbf16>
  tile.store %tile to %q[%c0, %c0, %x, %c0] : tensor<64x64xbf16>, memref<?x?x?x64xbf16>
  return
}

// -----

// With a tail, one block of three stays: it takes pairs, 78 of 100 in whole rounds. The two others share what is left.
// CHECK-LABEL: func.func @tail
// CHECK-SAME:    #tile.kernel<warpgroups = 1, grid = {{\[}}[#plan.multiprocessors<blocks = 3>]]>
func.func @tail(%q: memref<?x64xbf16>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>]], schedule = <stay = true, tail = 2>>} {
  // CHECK:       %[[TILES:.*]] = arith.ceildivui
  // CHECK:       %[[BLOCK:.*]] = gpu.block_id x
  // CHECK:       %[[BLOCKS:.*]] = gpu.grid_dim x
  // CHECK:       %[[STAYING:.*]] = arith.divui %[[BLOCKS]], %c3
  // CHECK:       %[[STAYS:.*]] = arith.cmpi ult, %[[BLOCK]], %[[STAYING]]
  // CHECK:       %[[MOST:.*]] = arith.divui %[[TILES]], %c2
  // CHECK:       %[[SCALED:.*]] = arith.muli %[[MOST]], %c78
  // CHECK:       %[[WANTED:.*]] = arith.divui %[[SCALED]], %c100
  // CHECK:       %[[UNEVEN:.*]] = arith.remui %[[WANTED]], %[[STAYING]]
  // CHECK:       %[[OWN:.*]] = arith.select %[[STAYS]]
  // CHECK:       arith.addi %[[OWN]]
  // CHECK:       arith.select %[[STAYS]], %[[OF_PAIRS:.*]], %c0
  // CHECK:       %[[COUNT:.*]] = arith.select %[[STAYS]], %[[OF_PAIRS]],
  // CHECK:       scf.for %{{.*}} = %{{.*}} to %[[COUNT]] step
  %x = gpu.block_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %at = arith.muli %x, %c64 : index
  scf.for %i = %c0 to %x step %c1 {
    %tile = tile.load %q[%at, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
    tile.store %tile to %q[%at, %c0] : tensor<64x64xbf16>, memref<?x64xbf16>
  }
  return
}

// -----

// Where blocks are even there is none.
// CHECK-LABEL: func.func @no_tail
// CHECK-SAME:    #plan.multiprocessors<blocks = 1>
func.func @no_tail(%q: memref<?x64xbf16>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>]], schedule = <stay = true, tail = 2>>} {
  %x = gpu.block_id x
  %c0 = arith.constant 0 : index
  %tile = tile.load %q[%x, %c0] : memref<?x64xbf16> -> tensor<64x64xbf16>
  tile.store %tile to %q[%x, %c0] : tensor<64x64xbf16>, memref<?x64xbf16>
  return
}
