// RUN: attn-opt %s --convert-attn-to-tile | FileCheck %s

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
// Rows may be in the results only.
// CHECK-LABEL: func @rows_in_no_operand_sum(
// CHECK: %[[ROWS:.*]] = affine.min
// CHECK: scf.for
// CHECK:   tile.coord 0
// CHECK:   tile.gather
// CHECK:   tile.reduce add
// CHECK: tile.store
func.func @rows_in_no_operand(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %g = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, #map3], iterator_types = ["parallel", "reduction"]} ins(%xt : tensor<?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}
