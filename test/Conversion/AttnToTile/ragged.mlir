// RUN: attn-opt %s --attn-to-online="target=cuda block-m=64 block-n=64" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// Queries, keys and values are rows of sequences, and so is the output, whose memory is the caller's. The grid is of M
// rows of as many sequences as there are offsets but one.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: memref<?x?x64xbf16, strided<[?, ?, 1]>> {plan.ragged = #plan.ragged<offsets = 3, most = 4, dim = 0>},
// CHECK-SAME:    %[[K:[a-z0-9]*]]: memref<?x?x64xbf16, strided<[?, ?, 1]>> {plan.ragged = #plan.ragged<offsets = 3, most = 4, dim = 0>},
// CHECK-SAME:    %[[V:[a-z0-9]*]]: memref<?x?x64xbf16, strided<[?, ?, 1]>> {plan.ragged = #plan.ragged<offsets = 3, most = 4, dim = 0>},
// CHECK-SAME:    %[[OFFSETS:[a-z0-9]*]]: memref<?xi32, strided<[?]>>, %{{[a-z0-9]*}}: memref<?xi8, strided<[?]>>,
// CHECK-SAME:    %[[O:[a-z0-9]*]]: memref<?x?x64xbf16, strided<[?, ?, 1]>> {plan.ragged = #plan.ragged<offsets = 3, most = 4, dim = 0>})
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 4, dim = 0, divisor = 64>], [#plan.extent<argument = 0, dim = 1>], [#plan.extent<argument = 3, dim = 0, less = 1>]]
// A block without rows has no keys.
// CHECK:         memref.load %[[OFFSETS]]
// CHECK:         arith.select %{{.*}}, %{{.*}}, %c0
// CHECK:         tile.load %[[Q]][%block_id_z, %block_id_y, %{{.*}}, %c0]
// A short tile has values of the next sequence.
// CHECK:         tile.clear_unread
// CHECK:         tile.store %{{.*}} to %[[O]][%block_id_z, %block_id_y, %{{.*}}, %c0]
func.func @attention(%rows_q: tensor<?x?x64xbf16>, %rows_k: tensor<?x?x64xbf16>, %rows_v: tensor<?x?x64xbf16>,
                     %offsets: tensor<?xi32>, %most: tensor<?xi8>) -> tensor<?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %most, %c0 : tensor<?xi8>
  %q = attn.ragged %rows_q[%offsets] up_to %m : tensor<?x?x64xbf16>, tensor<?xi32> -> tensor<?x?x?x64xbf16>
  %k = attn.ragged %rows_k[%offsets] up_to %m : tensor<?x?x64xbf16>, tensor<?xi32> -> tensor<?x?x?x64xbf16>
  %v = attn.ragged %rows_v[%offsets] up_to %m : tensor<?x?x64xbf16>, tensor<?xi32> -> tensor<?x?x?x64xbf16>
  %o = attn.attention %q, %k, %v
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  %t = tensor.dim %rows_q, %c0 : tensor<?x?x64xbf16>
  %h = tensor.dim %rows_q, %c1 : tensor<?x?x64xbf16>
  %empty = tensor.empty(%t, %h) : tensor<?x?x64xbf16>
  %placed = attn.place %o[%offsets] into %empty : tensor<?x?x?x64xbf16>, tensor<?xi32> -> tensor<?x?x64xbf16>
  return %placed : tensor<?x?x64xbf16>
}
