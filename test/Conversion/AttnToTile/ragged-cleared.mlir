// RUN: attn-translate %s --target=sm_90a --way=long --until=tile | FileCheck %s

// Rows that are placed into zeros: a kernel before the others stores them where no tile goes. Sixteen blocks share each of
// the ranges: what a sequence has beyond the most rows; and, of the last, all before the first sequence and after the last.
// CHECK-LABEL: func.func @attention_clear(
// CHECK-SAME:    %[[OFFSETS:[a-z0-9]+]]: memref<?xi64, {{.*}}%[[MOST:[a-z0-9]+]]: memref<?xi8, {{.*}}%[[OUT:[a-z0-9]+]]: memref<?x?x64xbf16, {{.*}}>)
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 1, dim = 0>, 16], [], []]
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : bf16
// CHECK-DAG:   %[[T:.*]] = memref.dim %[[OUT]], %c0
// CHECK-DAG:   %[[M:.*]] = memref.dim %[[MOST]], %c0
// CHECK-DAG:   %[[SEQUENCE:.*]] = arith.divui %{{.*}}, %c16
// CHECK-DAG:   %[[PART:.*]] = arith.remui %{{.*}}, %c16
// CHECK:       %[[LAST:.*]] = arith.cmpi eq, %[[SEQUENCE]],
// Offsets are clamped in their own type.
// CHECK:       %[[READ:.*]] = memref.load %[[OFFSETS]][%[[SEQUENCE]]]
// CHECK:       arith.maxsi %[[READ]], %c0_i64
// CHECK:       arith.minsi
// CHECK:       %[[STEPS:.*]] = arith.minui %[[M]],
// CHECK:       %[[FROM:.*]] = arith.addi %{{.*}}, %[[PART]]
// CHECK:       scf.for %[[ROW:.*]] = %[[FROM]] to %{{.*}} step %c16
// CHECK:         scf.for %[[HEAD:.*]] = %c0 to %{{.*}} step %c64
// CHECK:           %[[TILE:.*]] = tile.broadcast %[[ZERO]] : bf16 -> tensor<64x64xbf16>
// CHECK:           tile.store %[[TILE]] to %[[OUT]][%[[ROW]], %[[HEAD]], %c0]
// CHECK:       scf.for %{{.*}} = %[[PART]] to %{{.*}} step %c16
// CHECK:       return
// CHECK-LABEL: func.func @attention(
func.func @attention(%rows: tensor<?x?x64xbf16>, %offsets: tensor<?xi64>, %most: tensor<?xi8>) -> tensor<?x?x64xbf16> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %max = tensor.dim %most, %zero : tensor<?xi8>
  %q = attn.ragged %rows[%offsets] up_to %max : tensor<?x?x64xbf16>, tensor<?xi64> -> tensor<?x?x?x64xbf16>
  %o = attn.attention %q, %q, %q : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  %count = tensor.dim %rows, %zero : tensor<?x?x64xbf16>
  %heads = tensor.dim %rows, %one : tensor<?x?x64xbf16>
  %empty = tensor.empty(%count, %heads) : tensor<?x?x64xbf16>
  %none = arith.constant 0.0 : bf16
  %zeros = linalg.fill ins(%none : bf16) outs(%empty : tensor<?x?x64xbf16>) -> tensor<?x?x64xbf16>
  %placed = attn.place %o[%offsets] into %zeros : tensor<?x?x?x64xbf16>, tensor<?xi64> -> tensor<?x?x64xbf16>
  return %placed : tensor<?x?x64xbf16>
}
