// RUN: attn-opt %s --attn-fold-scales | FileCheck %s

// A scale of the tensor, of a batch and a key head, and of blocks of keys: the score function and the factors of
// weights read them, each where it is.
// CHECK-LABEL: func.func @scales(
// CHECK-SAME: %[[Q:.*]]: tensor<?x?x?x64xf8E4M3FN>, %[[K:.*]]: tensor<?x?x?x64xf8E4M3FN>, %[[V:.*]]: tensor<?x?x?x64xf8E4M3FN>,
// CHECK-SAME: %[[QS:.*]]: tensor<f32>, %[[KS:.*]]: tensor<?x?xf32>, %[[VS:.*]]: tensor<?x?x?xf32>)
func.func @scales(%q: tensor<?x?x?x64xf8E4M3FN>, %k: tensor<?x?x?x64xf8E4M3FN>, %v: tensor<?x?x?x64xf8E4M3FN>,
                  %qs: tensor<f32>, %ks: tensor<?x?xf32>, %vs: tensor<?x?x?xf32>) -> tensor<?x?x?x64xbf16> {
  // CHECK-NOT: attn.scaled
  // CHECK: %[[GROUP:.*]] = arith.maxsi
  // CHECK: %[[VGROUP:.*]] = arith.maxsi
  // CHECK: %[[O:.*]] = attn.attention %[[Q]], %[[K]], %[[V]]
  // CHECK-NEXT: score(%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[M:.*]], %[[N:.*]]) {
  // CHECK-DAG: %[[QSCALE:.*]] = tensor.extract %[[QS]][] : tensor<f32>
  // CHECK-DAG: %[[KHEAD:.*]] = arith.divui %[[H]], %{{.*}} : index
  // CHECK-DAG: %[[KSCALE:.*]] = tensor.extract %[[KS]][%[[B]], %[[KHEAD]]]
  // CHECK: %[[SCALE:.*]] = arith.mulf %[[QSCALE]], %[[KSCALE]]
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[S]], %[[SCALE]]
  // CHECK: %[[T:.*]] = math.tanh %[[SCALED]]
  // CHECK: %[[BLOCK:.*]] = arith.divui %[[N]], %{{.*}} : index
  // CHECK: %[[VSCALE:.*]] = tensor.extract %[[VS]][%[[B]], %{{.*}}, %[[BLOCK]]]
  // CHECK: attn.yield %[[T]], %[[VSCALE]] : f32, f32
  %qw = attn.scaled %q, %qs : tensor<?x?x?x64xf8E4M3FN>, tensor<f32> -> tensor<?x?x?x64xbf16>
  %kw = attn.scaled %k, %ks : tensor<?x?x?x64xf8E4M3FN>, tensor<?x?xf32> -> tensor<?x?x?x64xbf16>
  %vw = attn.scaled %v, %vs block 128 : tensor<?x?x?x64xf8E4M3FN>, tensor<?x?x?xf32> -> tensor<?x?x?x64xbf16>
  %o = attn.attention %qw, %kw, %vw
    score(%s, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      attn.yield %t : f32
    } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// An op elsewhere reads scales of its own elements.
// CHECK-LABEL: func.func @at(
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x8x64xf8E4M3FN>, %[[S:.*]]: tensor<1x2xf32>, %[[FIRST:.*]]: index)
func.func @at(%q: tensor<1x2x8x64xf8E4M3FN>, %s: tensor<1x2xf32>, %first: index) -> tensor<1x2x8x64xbf16> {
  // CHECK: score(%{{.*}}, %{{.*}}, %[[H:.*]], %{{.*}}, %{{.*}}) {
  // CHECK: arith.subi %[[H]], %[[FIRST]] : index
  %w = attn.scaled %q, %s : tensor<1x2x8x64xf8E4M3FN>, tensor<1x2xf32> -> tensor<1x2x8x64xbf16>
  %o = attn.attention %w, %w, %w at(%first, %first, %first, %first) : tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16>, tensor<1x2x8x64xbf16> -> tensor<1x2x8x64xbf16>
  return %o : tensor<1x2x8x64xbf16>
}

// A size of the view is one of what it shows.
// CHECK-LABEL: func.func @size(
// CHECK-SAME: %[[Q:.*]]: tensor<?x?x?x64xf8E5M2>
func.func @size(%q: tensor<?x?x?x64xf8E5M2>, %s: tensor<f32>) -> index {
  // CHECK: tensor.dim %[[Q]]
  %c2 = arith.constant 2 : index
  %w = attn.scaled %q, %s : tensor<?x?x?x64xf8E5M2>, tensor<f32> -> tensor<?x?x?x64xf16>
  %rows = tensor.dim %w, %c2 : tensor<?x?x?x64xf16>
  return %rows : index
}
