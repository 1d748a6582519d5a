// RUN: attn-opt %s --attn-append-gradients --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x16xbf16>
!row = tensor<?x?x?xf32>

// An argument for the gradient of each result, a result for that of each thing that attention reads.
// CHECK-LABEL: func @all(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?x16xbf16>, %[[X:[a-z0-9]+]]: tensor<?x?xf32>, %[[IDS:[a-z0-9]+]]: tensor<?xi32>, %[[SLOPES:[a-z0-9]+]]: tensor<?xbf16>,
// CHECK-SAME: %[[SINK:[a-z0-9]+]]: tensor<?xf32>, %[[DO:[a-z0-9]+]]: tensor<?x?x?x16xbf16> {attn.name = "d_output"}, %[[DL:[a-z0-9]+]]: tensor<?x?x?xf32> {attn.name = "d_lse"})
// CHECK-SAME: -> (tensor<?x?x?x16xbf16>, tensor<?x?x?xf32>, tensor<?x?x?x16xbf16> {attn.name = "d_query"}, tensor<?x?x?x16xbf16> {attn.name = "d_key"}, tensor<?x?x?x16xbf16> {attn.name = "d_value"}, tensor<?xf32> {attn.name = "d_sink"}, tensor<?x?xf32> {attn.name = "d_wrt"}, tensor<?xf32> {attn.name = "d_wrt"})
func.func @all(%q: !t, %x: tensor<?x?xf32>, %ids: tensor<?xi32>, %slopes: tensor<?xbf16>, %sink: tensor<?xf32>) -> (!t, !row) {
  // CHECK: %[[O:.*]], %[[L:.*]], %[[LOW:.*]] = attn.attention
  // CHECK: attn.attention_grad %[[Q]], %[[Q]], %[[Q]], %[[O]], %[[L]], %[[DO]] variants [#attn.key_length, #attn.alibi<top_left>]
  // CHECK-SAME: captures(%[[IDS]], %[[SLOPES]] : tensor<?xi32>, tensor<?xbf16>) lse_low(%[[LOW]] : tensor<?x?x?xf32>) d_lse(%[[DL]] : tensor<?x?x?xf32>)
  // CHECK-SAME: sink(%[[SINK]] : tensor<?xf32>) wrt(%[[X]], %[[SLOPES]] : tensor<?x?xf32>, tensor<?xbf16>)
  // CHECK: score(
  %o, %lse = attn.attention %q, %q, %q variants [#attn.key_length, #attn.alibi<top_left>] captures(%ids, %slopes : tensor<?xi32>, tensor<?xbf16>)
    sink(%sink : tensor<?xf32>)
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h, %n] : tensor<?x?xf32>
      %t = arith.addf %s, %a : f32
      attn.yield %t : f32
    } : !t, !t, !t -> !t, !row
  return %o, %lse : !t, !row
}

// Gradients start from a log-sum-exp, which has none where the function does not return it. Without a score function it has
// no low part.
// CHECK-LABEL: func @output(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<?x?x?x16xbf16>, %[[DO:[a-z0-9]+]]: tensor<?x?x?x16xbf16> {attn.name = "d_output"}) ->
func.func @output(%q: !t) -> !t {
  // CHECK: %[[O:.*]], %[[L:.*]] = attn.attention {{.*}} -> tensor<?x?x?x16xbf16>, tensor<?x?x?xf32>
  // CHECK: attn.attention_grad {{.*}}, %[[O]], %[[L]], %[[DO]] :
  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t
  return %o : !t
}

// What is called keeps its arguments.
// CHECK-LABEL: func private @called(
// CHECK-NOT: attn.attention_grad
func.func private @called(%q: !t) -> !t {
  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t
  return %o : !t
}

func.func @caller(%q: !t) -> !t {
  %o = call @called(%q) : (!t) -> !t
  return %o : !t
}
