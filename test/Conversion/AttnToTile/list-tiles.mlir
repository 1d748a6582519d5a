// RUN: attn-opt %s --attn-to-online=target=cuda --convert-attn-to-tile --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x128xbf16>

// A block of one warpgroup votes about a tile, 64 columns at a time; rows and keys that are not there are like the last.
// CHECK-LABEL: func.func @documents_status(
// CHECK-SAME: tile.scratch = [#plan.extent<argument = 0, dim = 0>, 1, #plan.extent<argument = 0, dim = 2, divisor = 128>, #plan.extent<argument = 1, dim = 2, divisor = 128>]
// CHECK-SAME: tile.kernel = #tile.kernel<warpgroups = 1, grid = {{\[\[}}#plan.extent<argument = 0, dim = 2, divisor = 128>, #plan.extent<argument = 1, dim = 2, divisor = 128>], [1], [#plan.extent<argument = 0, dim = 0>]]
// CHECK: %[[STATUS:.*]] = scf.if
// CHECK: %[[M:.*]] = arith.minsi
// CHECK: %[[N:.*]] = arith.minsi
// CHECK: %[[ROW:.*]] = tile.gather %{{.*}}[%{{.*}}, %[[M]]]
// CHECK: %[[KEY:.*]] = tile.gather %{{.*}}[%{{.*}}, %[[N]]]
// CHECK: %[[KEEP:.*]] = arith.cmpi eq, %[[ROW]], %[[KEY]] : tensor<128x64xi32>
// CHECK: tile.vote any %[[KEEP]]
// CHECK: tile.vote all %[[KEEP]]
// CHECK: tile.vote any
// CHECK: tile.vote all
// CHECK: memref.store
// CHECK-LABEL: func.func @documents_lists(
// CHECK-SAME: tile.scratch = [#plan.extent<argument = 0, dim = 0>, 1, #plan.extent<argument = 0, dim = 2, divisor = 128>, 2]
// CHECK: %[[COUNTS:.*]]:2 = scf.for
// CHECK: memref.load
// CHECK: memref.store
// CHECK: memref.store
// CHECK: memref.store
// CHECK-LABEL: func.func @documents(
// CHECK: %[[KEY:.*]] = memref.load
// CHECK: arith.index_cast %[[KEY]]
// CHECK: scf.for %[[I:.*]] = %c1
// CHECK: %[[LOAD:.*]] = memref.load %{{.*}}[%{{.*}}, %c0, %{{.*}}, %[[I]]]
// CHECK: %[[KEY:.*]] = arith.index_cast %[[LOAD]] : i32 to index
// CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %[[KEY]], %c0]
func.func @documents(%q: !t, %k: !t, %v: !t, %ids: tensor<?x?xi32>) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.document] captures(%ids, %ids : tensor<?x?xi32>, tensor<?x?xi32>) : !t, !t, !t -> !t
  return %o : !t
}
