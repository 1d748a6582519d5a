// RUN: attn-opt %s --convert-attn-to-linalg=f64 --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>
!row = tensor<?x?x?xf32>
!x = tensor<?xbf16>

// g6 and g8 in f64: dS is 0 where P is; contributions are added one by one, 0 where P is.
// CHECK-LABEL: func @captured(
func.func @captured(%q: !t, %l: !row, %x: !x) -> (!t, tensor<?xf64>) {
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x?x?x?xf64>)
  // CHECK:   math.exp
  // CHECK: linalg.generic
  // CHECK:   %[[DS:.*]] = arith.negf
  // CHECK:   %[[IS:.*]] = arith.cmpf oeq
  // CHECK:   arith.select %[[IS]], %{{.*}}, %[[DS]] : f64
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: scf.for %[[M:[a-z0-9]+]] =
  // CHECK: scf.for %{{.*}} iter_args(%[[SUMS:.*]] = %{{.*}}) -> (tensor<?xf64>)
  // CHECK:   tensor.extract
  // CHECK:   %[[DT:.*]] = tensor.extract
  // CHECK:   %[[OLD:.*]] = tensor.extract %[[SUMS]][%[[M]]]
  // CHECK:   %[[KEPT:.*]] = arith.select %{{.*}}, %{{.*}}, %[[DT]] : f64
  // CHECK:   %[[NEW:.*]] = arith.addf %[[OLD]], %[[KEPT]]
  // CHECK:   %[[NEXT:.*]] = tensor.insert %[[NEW]] into %[[SUMS]][%[[M]]]
  // CHECK:   scf.yield %[[NEXT]]
  %d, %dw = attn.attention_grad %q, %q, %q, %q, %l, %q wrt(%x : !x)
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%m] : !x
      %w = arith.extf %a : bf16 to f32
      %t = arith.subf %w, %s : f32
      attn.yield %t : f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %x[%m] : !x
      %ds = arith.negf %dt : f32
      attn.yield %ds : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t) d_wrt(tensor<?xf64>)
  return %d, %dw : !t, tensor<?xf64>
}

// g9
// CHECK-LABEL: func @sink(
func.func @sink(%q: !t, %l: !row, %sink: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "reduction"]}
  // CHECK:   math.exp
  // CHECK:   arith.subf
  // CHECK: arith.truncf
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q sink(%sink : tensor<?xf32>) : !t, !t, !t, !t, !row, !t -> d_sink(tensor<?xf32>)
  return %d : tensor<?xf32>
}
