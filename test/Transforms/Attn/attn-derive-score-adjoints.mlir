// RUN: attn-opt %s --attn-derive-score --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x4xf32>
!row = tensor<?x?x?xf32>

// A factor that can be infinite does not make NaN of an adjoint of 0.
// CHECK-LABEL: func @log(
func.func @log(%q: !t, %l: !row) -> !t {
  // CHECK: grad(%[[S:[a-z0-9]+]], %[[DT:[a-z0-9]+]],
  // CHECK-NEXT: %[[DS:.*]] = arith.divf %[[DT]], %[[S]]
  // CHECK-NEXT: %[[IS:.*]] = arith.cmpf oeq, %[[DT]], %[[ZERO:.*]] : f32
  // CHECK-NEXT: %[[R:.*]] = arith.select %[[IS]], %[[ZERO]], %[[DS]]
  // CHECK-NEXT: attn.yield %[[R]]
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %t = math.log %s : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// The winner has the adjoint; of equals each has half.
// CHECK-LABEL: func @relu(
func.func @relu(%q: !t, %l: !row) -> !t {
  // CHECK: grad(%[[S:[a-z0-9]+]], %[[DT:[a-z0-9]+]],
  // CHECK-NEXT: %[[TIE:.*]] = arith.cmpf oeq, %[[S]], %[[ZERO:.*]] : f32
  // CHECK-NEXT: %[[HALF:.*]] = arith.mulf %[[DT]], %{{.*}}
  // CHECK-NEXT: %[[LOSES:.*]] = arith.cmpf olt, %[[S]], %[[ZERO]]
  // CHECK-NEXT: %[[ALONE:.*]] = arith.select %[[LOSES]], %[[ZERO]], %[[DT]]
  // CHECK-NEXT: %[[R:.*]] = arith.select %[[TIE]], %[[HALF]], %[[ALONE]]
  // CHECK-NEXT: attn.yield %[[R]]
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %zero = arith.constant 0.0 : f32
      %t = arith.maximumf %s, %zero : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// Adjoints of a value that is used twice add up; those of each side of a select meet at its operands.
// CHECK-LABEL: func @select(
func.func @select(%q: !t, %l: !row) -> !t {
  // CHECK: grad(%[[S:[a-z0-9]+]], %[[DT:[a-z0-9]+]],
  // CHECK-NEXT: %[[IS:.*]] = arith.cmpf ogt, %[[S]]
  // CHECK-NEXT: %[[Y:.*]] = math.exp %[[S]]
  // CHECK-NEXT: %[[DY:.*]] = arith.select %[[IS]], %[[DT]], %[[ZERO:.*]] : f32
  // CHECK-NEXT: %[[DIRECT:.*]] = arith.select %[[IS]], %[[ZERO]], %[[DT]] : f32
  // CHECK-NEXT: %[[BY_EXP:.*]] = arith.mulf %[[DY]], %[[Y]]
  // CHECK-NEXT: %[[R:.*]] = arith.addf %[[DIRECT]], %[[BY_EXP]]
  // CHECK-NEXT: attn.yield %[[R]]
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %zero = arith.constant 0.0 : f32
      %is = arith.cmpf ogt, %s, %zero : f32
      %x = math.exp %s : f32
      %t = arith.select %is, %x, %s : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// Rounding stops: what is left is the other way to the result.
// CHECK-LABEL: func @fraction(
func.func @fraction(%q: !t, %l: !row) -> !t {
  // CHECK: grad(%{{[a-z0-9]+}}, %[[DT:[a-z0-9]+]],
  // CHECK-NEXT: attn.yield %[[DT]]
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %f = math.floor %s : f32
      %t = arith.subf %s, %f : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}

// Nothing moves with the score.
// CHECK-LABEL: func @constant(
func.func @constant(%q: !t, %l: !row) -> !t {
  // CHECK: grad(
  // CHECK-NEXT: attn.yield %cst : f32
  %d = attn.attention_grad %q, %q, %q, %q, %l, %q
    score(%s, %b, %h, %m, %n) {
      %t = math.trunc %s : f32
      attn.yield %t : f32
    } : !t, !t, !t, !t, !row, !t -> d_query(!t)
  return %d : !t
}
