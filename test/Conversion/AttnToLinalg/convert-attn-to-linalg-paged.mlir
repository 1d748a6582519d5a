// RUN: attn-opt %s --convert-attn-to-linalg | FileCheck %s

// The element of a page that the table names, and NaN where it names none: then page 0 is read in vain.
// CHECK-LABEL: func.func @paged(
// CHECK-SAME:    %[[POOL:.*]]: tensor<?x64x?x128xbf16>, %[[TABLE:.*]]: tensor<?x?xi32>)
// CHECK-DAG:   %[[PAGES:.*]] = tensor.dim %[[POOL]], %c0
// CHECK-DAG:   %[[C:.*]] = tensor.dim %[[TABLE]], %c1
// CHECK:       arith.muli %[[C]], %c64
// CHECK:       %[[NAN:.*]] = arith.constant 0x7FC0 : bf16
// CHECK:       linalg.fill ins(%[[NAN]]
// CHECK:       linalg.generic
// CHECK:         arith.divui
// CHECK:         %[[ENTRY:.*]] = tensor.extract %[[TABLE]]
// CHECK:         %[[PAGE:.*]] = arith.index_cast %[[ENTRY]]
// CHECK:         %[[IS:.*]] = arith.cmpi ult, %[[PAGE]], %[[PAGES]]
// CHECK:         arith.select %[[IS]], %[[PAGE]]
// CHECK:         arith.remui
// CHECK:         %[[X:.*]] = tensor.extract %[[POOL]]
// CHECK:         arith.select %[[IS]], %[[X]]
func.func @paged(%pool: tensor<?x64x?x128xbf16>, %table: tensor<?x?xi32>) -> tensor<?x?x?x128xbf16> {
  %k = attn.paged %pool[%table] : tensor<?x64x?x128xbf16>, tensor<?x?xi32> -> tensor<?x?x?x128xbf16>
  return %k : tensor<?x?x?x128xbf16>
}
