// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

!x = tensor<?x?x?x64xbf16>
!r = tensor<?x?x?xf32>

// Numbers that a caller gives are gathered, within the tensors, and what is behind the last row weighs nothing; memory holds delta.
// CHECK-LABEL: func.func @given
// CHECK:         %[[CLAMPED:.*]] = arith.minsi
// CHECK:         %[[DELTA:.*]] = tile.gather %arg5[%{{.*}}, %{{.*}}, %[[CLAMPED]]]
// CHECK:         %[[START:.*]] = arith.negf %[[DELTA]]
// CHECK:         tile.mma %{{.*}}, %{{.*}}, %[[START]] {transpose_rhs}
// CHECK:         %[[NL:.*]] = tile.gather %arg4[%{{.*}}, %{{.*}}, %[[CLAMPED]]]
// CHECK:         %[[LEFT:.*]] = arith.select %{{.*}}, %[[NL]], %{{.*}}
// CHECK:         math.fma %{{.*}}, %{{.*}}, %[[LEFT]]
func.func @given(%q: !x, %k: !x, %v: !x, %do: !x, %nl: !r, %delta: !r) -> (!x, !x) {
  %g:2 = attn.attention_grad_key_value %q, %k, %v, %do, %nl, %delta : !x, !x, !x, !x, !r, !r -> d_key(!x) d_value(!x)
  return %g#0, %g#1 : !x, !x
}

// What is read in another way too stays as it is: here one tensor is both numbers.
// CHECK-LABEL: func.func @both_rows
// CHECK:       %[[NL:.*]] = arith.select {{.*}} tensor<128xf32>
// CHECK:       tile.store %[[NL]] to %arg8
// CHECK-LABEL: func.func @both_key_value
// CHECK:         %[[NL:.*]] = tile.load_columns %arg8
// CHECK:         %[[START:.*]] = arith.negf %[[NL]]
// CHECK:         tile.mma %{{.*}}, %{{.*}}, %[[START]] {transpose_rhs}
func.func @both(%q: !x, %k: !x, %v: !x, %do: !x, %o: !x, %lse: !r) -> (!x, !x) {
  %nl, %delta = attn.row_delta %o, %do, %lse : !x, !x, !r -> !r, !r
  %g:2 = attn.attention_grad_key_value %q, %k, %v, %do, %nl, %nl : !x, !x, !x, !x, !r, !r -> d_key(!x) d_value(!x)
  return %g#0, %g#1 : !x, !x
}
