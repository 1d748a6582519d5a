// RUN: attn-opt %s --convert-attn-to-linalg --split-input-file | FileCheck %s

// A row that a sequence has, and NaN for others: then row 0 is read in vain. Offsets that fall or leave [0, T] mean
// fewer rows.
// CHECK-LABEL: func.func @ragged(
// CHECK-SAME:    %[[ROWS:.*]]: tensor<?x?x128xbf16>, %[[OFFSETS:.*]]: tensor<?xi32>, %[[M:.*]]: index)
// CHECK:       %[[NAN:.*]] = arith.constant 0x7FC0 : bf16
// CHECK:       linalg.fill ins(%[[NAN]]
// CHECK:       linalg.generic
// CHECK:         %[[A:.*]] = tensor.extract %[[OFFSETS]]
// CHECK:         %[[LEAST:.*]] = arith.maxsi %[[A]], %c0_i32
// CHECK:         %[[FIRST:.*]] = arith.minsi %[[LEAST]], %[[T:.*]] : i32
// CHECK:         %[[BEGIN:.*]] = arith.index_cast %[[FIRST]]
// CHECK:         %[[B:.*]] = tensor.extract %[[OFFSETS]]
// CHECK:         %[[FROM:.*]] = arith.maxsi %[[B]], %c0_i32
// CHECK:         %[[NEXT:.*]] = arith.minsi %[[FROM]], %[[T]]
// CHECK:         %[[AT:.*]] = arith.index_cast %[[NEXT]]
// CHECK:         %[[END:.*]] = arith.maxsi %[[AT]], %[[BEGIN]]
// CHECK:         arith.subi %[[END]], %[[BEGIN]]
// CHECK:         %[[COUNT:.*]] = arith.minui %{{.*}}, %[[M]] : index
// CHECK:         %[[IS:.*]] = arith.cmpi slt, %{{.*}}, %[[COUNT]]
// CHECK:         %[[X:.*]] = tensor.extract %[[ROWS]]
// CHECK:         arith.select %[[IS]], %[[X]]
func.func @ragged(%rows: tensor<?x?x128xbf16>, %offsets: tensor<?xi32>, %m: index) -> tensor<?x?x?x128xbf16> {
  %q = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x128xbf16>, tensor<?xi32> -> tensor<?x?x?x128xbf16>
  return %q : tensor<?x?x?x128xbf16>
}

// -----

// Sequence by sequence, each at its place among the rows that were there.
// CHECK-LABEL: func.func @place(
// CHECK-SAME:    %[[O:.*]]: tensor<?x?x?x64xf32>, %{{.*}}: tensor<?xi32>, %[[OUT:.*]]: tensor<?x?x64xf32>)
// CHECK:       scf.for %[[BATCH:.*]] = %{{.*}} iter_args(%[[SUM:.*]] = %[[OUT]])
// CHECK:         %[[COUNT:.*]] = arith.minui %{{.*}} : index
// CHECK:         tensor.extract_slice %[[O]][%[[BATCH]], 0, 0, 0] [1, %{{.*}}, %[[COUNT]], 64] [1, 1, 1, 1]
// CHECK:         %[[PART:.*]] = linalg.generic
// CHECK:         tensor.insert_slice %[[PART]] into %[[SUM]][%{{.*}}, 0, 0] [%[[COUNT]], %{{.*}}, 64] [1, 1, 1]
func.func @place(%o: tensor<?x?x?x64xf32>, %offsets: tensor<?xi32>, %out: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %t = attn.place %o[%offsets] into %out : tensor<?x?x?x64xf32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %t : tensor<?x?x64xf32>
}
