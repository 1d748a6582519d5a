// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// A block moves some heads of one row. A number of a slot is compared as 64 bits; a row that has none is stored after the last head.
// CHECK-LABEL: func.func @append_append(
// CHECK-SAME:    %[[NEW:.*]]: memref<?x?x128xbf16, {{.*}}>, %[[SLOTS:.*]]: memref<?xi32, {{.*}}>, %{{.*}}: memref<?x?x?x128xbf16, {{.*}}>, %[[POOL:.*]]: memref<?x?x?x128xbf16, {{.*}}>)
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 0, dim = 0>], [#plan.extent<argument = 0, dim = 1, divisor = 4>], []]
// CHECK-DAG:     %[[ROW:.*]] = gpu.block_id x
// CHECK-DAG:     %[[Y:.*]] = gpu.block_id y
// CHECK:         %[[HEAD:.*]] = arith.muli %[[Y]], %c4
// CHECK:         %[[TILE:.*]] = tile.load %[[NEW]][%[[ROW]], %[[HEAD]], %c0] : {{.*}} -> tensor<4x128xbf16>
// CHECK:         %[[SLOT:.*]] = memref.load %[[SLOTS]][%[[ROW]]]
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[SLOT]] : i32 to i64
// CHECK:         %[[EXISTS:.*]] = arith.cmpi ult, %[[WIDE]], %{{.*}} : i64
// CHECK:         arith.divui %[[WIDE]], %{{.*}} : i64
// CHECK:         arith.remui %[[WIDE]], %{{.*}} : i64
// CHECK:         %[[HEADS:.*]] = memref.dim %[[POOL]], %c2
// CHECK:         %[[FIRST:.*]] = arith.select %[[EXISTS]], %[[HEAD]], %[[HEADS]] : index
// CHECK:         tile.store %[[TILE]] to %[[POOL]][%{{.*}}, %{{.*}}, %[[FIRST]], %c0]
func.func @append(%new: tensor<?x?x128xbf16>, %slots: tensor<?xi32>, %pool: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %pages = tensor.dim %pool, %c0 : tensor<?x?x?x128xbf16>
  %page = tensor.dim %pool, %c1 : tensor<?x?x?x128xbf16>
  %heads = tensor.dim %pool, %c2 : tensor<?x?x?x128xbf16>
  %memory = tensor.empty(%pages, %page, %heads) : tensor<?x?x?x128xbf16>
  %r = attn.append %new[%slots] into %memory : tensor<?x?x128xbf16>, tensor<?xi32>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %r : tensor<?x?x?x128xbf16>
}

// The other number of each pair is gathered, and products are rounded by themselves.
// CHECK-LABEL: func.func @turn_rotary(
// CHECK:         tile.coord 1
// CHECK:         tile.gather %{{.*}} : memref<?x32xf32, {{.*}}>
// CHECK:         tile.gather %{{.*}} : memref<?x32xf32, {{.*}}>
// CHECK:         tile.gather %{{.*}} : memref<?x?x128xf16, {{.*}}>
// CHECK:         math.fma
// CHECK:         math.fma
// CHECK-NEXT:    arith.addf
// CHECK:         tile.store
func.func @turn(%x: tensor<?x?x128xf16>, %at: tensor<?xi64>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> tensor<?x?x128xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?x128xf16>
  %heads = tensor.dim %x, %c1 : tensor<?x?x128xf16>
  %empty = tensor.empty(%rows, %heads) : tensor<?x?x128xf16>
  %r = attn.rotary %x at %at by %cos, %sin outs(%empty) : tensor<?x?x128xf16>, tensor<?xi64>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x?x128xf16> -> tensor<?x?x128xf16>
  return %r : tensor<?x?x128xf16>
}
