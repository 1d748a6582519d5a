// RUN: attn-opt %s --attn-to-online="target=cuda pack=8" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// The way for one row of a group of heads: pages of 64 keys are divided by tiles of 64, where others have 80.
// CHECK-LABEL: func.func @attention_packed_split(
// CHECK-SAME:    %{{[a-z0-9]*}}: memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>> {plan.packed = #plan.packed<slots = 8, keys = 1>},
// CHECK-SAME:    %[[K:[a-z0-9]*]]: memref<?x64x?x128xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 3, page = 64>},
// CHECK-SAME:    %[[V:[a-z0-9]*]]: memref<?x64x?x128xbf16, strided<[?, ?, ?, 1]>> {plan.paged = #plan.paged<table = 3, page = 64>},
// CHECK-SAME:    %[[T:[a-z0-9]*]]: memref<?x?xi32, strided<[?, 1]>>,
// Key heads are a dimension of the pool, keys are pages of the table times 64.
// CHECK-SAME:    tile.scratch = [#plan.parts<blocks = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 1, dim = 2>, {{.*}}], keys = #plan.extent<argument = 3, dim = 1, divisor = 4>, most = 64>
// CHECK:         %[[C:.*]] = memref.dim %[[T]], %c1
// CHECK:         arith.muli %[[C]], %c64
// CHECK:         tile.load %[[K]][%block_id_z, %block_id_y, %{{.*}}, %c0] {{.*}}tensor<64x128xbf16>
func.func @attention(%q: tensor<?x?x?x128xbf16>, %pool_k: tensor<?x64x?x128xbf16>, %pool_v: tensor<?x64x?x128xbf16>,
                     %table: tensor<?x?xi32>) -> tensor<?x?x?x128xbf16> {
  %k = attn.paged %pool_k[%table] : tensor<?x64x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
  %v = attn.paged %pool_v[%table] : tensor<?x64x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
  %o = attn.attention %q, %k, %v
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// Pages of 5 keys have no boxes, so that tiles need not fit them.
// CHECK-LABEL: func.func @small_packed_split(
// CHECK-SAME:    {plan.paged = #plan.paged<table = 3, page = 5>}
// CHECK:         tile.load %{{.*}} {{.*}}tensor<80x128xbf16>
func.func @small(%q: tensor<?x?x?x128xbf16>, %pool_k: tensor<?x5x?x128xbf16>, %pool_v: tensor<?x5x?x128xbf16>,
                 %table: tensor<?x?xi32>) -> tensor<?x?x?x128xbf16> {
  %k = attn.paged %pool_k[%table] : tensor<?x5x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
  %v = attn.paged %pool_v[%table] : tensor<?x5x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
  %o = attn.attention %q, %k, %v
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
