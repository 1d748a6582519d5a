// RUN: attn-opt %s --attn-expand-variants | FileCheck %s

!t = tensor<?x?x?x16xf16>


// Scores compose in the order of the list, masks are conjoined, each reads its own captures.
// CHECK-LABEL: func @composed(
// CHECK-SAME: %[[SLOPES:[a-z0-9]+]]: tensor<?xf32>, %[[LENGTHS:[a-z0-9]+]]: tensor<?xindex>)
func.func @composed(%q: !t, %k: !t, %slopes: tensor<?xf32>, %lengths: tensor<?xindex>) -> !t {
  // CHECK-NOT: captures
  // CHECK: score(
  // CHECK: math.tanh
  // CHECK: %[[CAPPED:.*]] = arith.mulf
  // CHECK: tensor.extract %[[SLOPES]]
  // CHECK: %[[R:.*]] = arith.subf %[[CAPPED]],
  // CHECK: attn.yield %[[R]]
  // CHECK: mask(
  // CHECK: %[[CAUSAL:.*]] = arith.cmpi sle
  // CHECK: tensor.extract %[[LENGTHS]]
  // CHECK: %[[SHORT:.*]] = arith.cmpi slt
  // CHECK: %[[BOTH:.*]] = arith.andi %[[CAUSAL]], %[[SHORT]]
  // CHECK: attn.yield %[[BOTH]]
  %o = attn.attention %q, %k, %k variants [#attn.causal<top_left>, #attn.softcap<30.0 : f32>, #attn.alibi<top_left>, #attn.key_length]
    captures(%slopes, %lengths : tensor<?xf32>, tensor<?xindex>) : !t, !t, !t -> !t
  return %o : !t
}
