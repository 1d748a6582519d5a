// RUN: attn-opt %s --convert-attn-to-linalg --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf32>

// s3: a score that the mask drops is -inf.
// CHECK-LABEL: func @mask(
func.func @mask(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
  // CHECK: linalg.generic
  // CHECK: linalg.generic
  // CHECK-DAG: %[[M:.*]] = linalg.index 2
  // CHECK-DAG: %[[N:.*]] = linalg.index 3
  // CHECK-DAG: %[[S:.*]] = arith.mulf
  // CHECK: %[[KEEP:.*]] = arith.cmpi sle, %[[N]], %[[M]]
  // CHECK: %[[T:.*]] = arith.select %[[KEEP]], %[[S]], %[[LOWEST]]
  // CHECK: linalg.yield %[[T]]
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
