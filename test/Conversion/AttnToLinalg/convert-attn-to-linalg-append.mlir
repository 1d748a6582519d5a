// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

// s23 and s28, row by row: a row that goes nowhere has no heads.
// CHECK-LABEL: func @append(
// CHECK:         %[[TURNED:.*]] = linalg.generic
// CHECK:           arith.mulf %{{.*}} : f64
// CHECK:           arith.truncf %{{.*}} : f64 to f16
// CHECK:         scf.for %[[ROW:.*]] = %{{.*}} iter_args(%[[POOL:.*]] =
// CHECK:           tensor.extract %{{.*}}[%[[ROW]]] : tensor<?xi64>
// CHECK:           %[[EXISTS:.*]] = arith.cmpi ult
// CHECK:           %[[HEADS:.*]] = arith.select %[[EXISTS]], %{{.*}}, %c0
// CHECK:           tensor.extract_slice %[[TURNED]][%[[ROW]], 0, 0] [1, %[[HEADS]], 64]
// CHECK:           tensor.insert_slice %{{.*}} into %[[POOL]]{{.*}} [1, 1, %[[HEADS]], 64]
func.func @append(%new: tensor<?x?x64xf16>, %slots: tensor<?xi64>, %at: tensor<?xi32>, %cos: tensor<?x16xf32>, %sin: tensor<?x16xf32>, %pool: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %r = attn.append %new[%slots] rotary(%at, %cos, %sin : tensor<?xi32>, tensor<?x16xf32>, tensor<?x16xf32>) into %pool : tensor<?x?x64xf16>, tensor<?xi64>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %r : tensor<?x?x?x64xf16>
}
