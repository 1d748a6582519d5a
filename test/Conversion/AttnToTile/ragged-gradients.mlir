// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s
// RUN: sed 's/x64xbf16/x128xbf16/g' %s | attn-opt --attn-to-online="target=cuda fused=true" --convert-attn-to-tile --canonicalize --cse \
// RUN:   | FileCheck %s --check-prefix=FUSED

// Rows of sequences in, rows of sequences out. Numbers of rows that a sequence does not have are such that they add nothing.
// CHECK-LABEL: func.func @gradient_rows(
// CHECK:         %[[ROW:.*]] = tile.coord 0 from %c0
// CHECK:         %[[EXISTS:.*]] = arith.cmpi slt, %[[ROW]], %{{.*}}
// CHECK:         arith.select %[[EXISTS]], %{{.*}}, %{{.*}} : tensor<{{[0-9]+}}xi1>, tensor<{{[0-9]+}}xf32>
// CHECK:         arith.select %[[EXISTS]], %{{.*}}, %{{.*}} : tensor<{{[0-9]+}}xi1>, tensor<{{[0-9]+}}xf32>

// Products read zeros where keys of the next sequence are, both times that they read them.
// CHECK-LABEL: func.func @gradient_query(
// CHECK:         scf.for
// CHECK:           %[[KEYS:.*]] = tile.clear_unread %{{.*}} from %[[COUNT:.*]] if %[[ENDS:.*]] :
// CHECK:           %[[VALUES:.*]] = tile.clear_unread %{{.*}} from %[[COUNT]] if %[[ENDS]] :
// CHECK:           tile.mma %{{.*}}, %[[KEYS]] {transpose_rhs}
// CHECK:           tile.mma %{{.*}}, %[[VALUES]] {transpose_rhs}
// CHECK:           tile.mma %{{.*}}, %[[KEYS]], %{{.*}}
// CHECK:         tile.store %{{.*}} to %{{.*}} : {{.*}}, memref<?x?x64xbf16

// So it is with queries and their gradients.
// CHECK-LABEL: func.func @gradient_key_value(
// CHECK:         scf.for
// CHECK:           %[[QUERIES:.*]] = tile.clear_unread %{{.*}} from %[[COUNT:.*]] if %[[ENDS:.*]] :
// CHECK:           %[[OUTPUTS:.*]] = tile.clear_unread %{{.*}} from %[[COUNT]] if %[[ENDS]] :
// CHECK:           tile.mma %{{.*}}, %[[QUERIES]] {transpose_rhs}
// CHECK:           tile.mma %{{.*}}, %[[OUTPUTS]], %{{.*}} {transpose_rhs}
// CHECK:           tile.mma %{{.*}}, %[[OUTPUTS]], %{{.*}}
// CHECK:           tile.mma %{{.*}}, %[[QUERIES]], %{{.*}}

// Blocks that own keys may add to gradients of queries. The sum starts with zeros where a sequence has rows. Keys and values of a block
// are cleared after its end too, once, for they are factors of the sum.
// FUSED-LABEL: func.func @gradient_rows(
// FUSED-SAME:    tile.scratch = [#plan.extent<argument = 3, dim = 0, less = 1>, #plan.extent<argument = 8, dim = 1>, #plan.extent<argument = 5, dim = 0, divisor = 64>, 128, 64]
// FUSED:         %[[SIZE:.*]] = affine.min
// FUSED-NEXT:    %[[END:.*]] = arith.addi %{{.*}}, %[[SIZE]] : index
// FUSED:         arith.ceildivui %[[END]], %c64
// FUSED-LABEL: func.func @gradient_key_value(
// FUSED:         %[[ENDS:.*]] = arith.cmpi slt, %[[COUNT:.*]], %c128
// FUSED-DAG:     %[[KEYS:.*]] = tile.clear_unread %{{.*}} from %[[COUNT]] if %[[ENDS]] : tensor<128x128xbf16>
// FUSED-DAG:     %[[VALUES:.*]] = tile.clear_unread %{{.*}} from %[[COUNT]] if %[[ENDS]] : tensor<128x128xbf16>
// FUSED:         scf.for
// FUSED:           tile.mma %[[KEYS]], %{{.*}} {transpose_rhs}
// FUSED:           tile.mma %[[VALUES]], %{{.*}} {transpose_rhs}
// FUSED:           tile.mma %[[KEYS]], %{{.*}} {transpose_lhs}
// FUSED:           tile.store %{{.*}} {add}
// FUSED-LABEL: func.func @gradient_query(
// Sequences may have no row: what is read then is there, and not stored.
// FUSED:         arith.maxsi %{{.*}} : tensor<{{.*}}xindex>
// FUSED:         tile.gather
!r = tensor<?x?x64xbf16>
!t = tensor<?x?x?x64xbf16>
func.func @gradient(%rq: !r, %rk: !r, %rv: !r, %cq: tensor<?xi32>, %ck: tensor<?xi32>, %mq: tensor<?xi8>, %mk: tensor<?xi8>,
    %ro: !r, %rlse: tensor<?x?xf32>, %rdo: !r) -> (!r, !r, !r) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %mq, %c0 : tensor<?xi8>
  %n = tensor.dim %mk, %c0 : tensor<?xi8>
  %q = attn.ragged %rq[%cq] up_to %m : !r, tensor<?xi32> -> !t
  %k = attn.ragged %rk[%ck] up_to %n : !r, tensor<?xi32> -> !t
  %v = attn.ragged %rv[%ck] up_to %n : !r, tensor<?xi32> -> !t
  %o = attn.ragged %ro[%cq] up_to %m : !r, tensor<?xi32> -> !t
  %do = attn.ragged %rdo[%cq] up_to %m : !r, tensor<?xi32> -> !t
  %lse = attn.ragged %rlse[%cq] up_to %m : tensor<?x?xf32>, tensor<?xi32> -> tensor<?x?x?xf32>
  %dq, %dk, %dv = attn.attention_grad %q, %k, %v, %o, %lse, %do
    : !t, !t, !t, !t, tensor<?x?x?xf32>, !t -> d_query(!t) d_key(!t) d_value(!t)
  %tq = tensor.dim %rq, %c0 : !r
  %hq = tensor.dim %rq, %c1 : !r
  %tk = tensor.dim %rk, %c0 : !r
  %hk = tensor.dim %rk, %c1 : !r
  %e0 = tensor.empty(%tq, %hq) : !r
  %e1 = tensor.empty(%tk, %hk) : !r
  %e2 = tensor.empty(%tk, %hk) : !r
  %p0 = attn.place %dq[%cq] into %e0 : !t, tensor<?xi32> -> !r
  %p1 = attn.place %dk[%ck] into %e1 : !t, tensor<?xi32> -> !r
  %p2 = attn.place %dv[%ck] into %e2 : !t, tensor<?xi32> -> !r
  return %p0, %p1, %p2 : !r, !r, !r
}
