// RUN: attn-opt %s --attn-online-softmax --canonicalize | FileCheck %s

// The head's sink, still a natural logarithm, joins at the end; so does the log-sum-exp.
// CHECK-LABEL: func @lse_sink(
// CHECK-SAME: %[[SINK:[a-z0-9]+]]: tensor<2xf32>)
func.func @lse_sink(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index, %sink: tensor<2xf32>) -> (tensor<2x2x128x16xf16>, tensor<2x2x128xf32>) {
  // CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) =
  // CHECK: %[[ST:.*]] = tensor.extract_slice %[[SINK]][%[[H]]]
  // CHECK: attn.online_attention
  // CHECK: %[[X:.*]] = tensor.extract %[[ST]][%c0] : tensor<1xf32>
  // CHECK: %[[R:.*]]:2 = attn.normalize {{.*}} sink(%[[X]]) outs(%{{.*}}, %{{.*}}) : {{.*}} -> tensor<64x16xf16>, tensor<64xf32>
  // CHECK: tensor.parallel_insert_slice %[[R]]#0
  // CHECK: tensor.parallel_insert_slice %[[R]]#1 into %{{.*}}[%[[B]], %[[H]], %[[M]]] [1, 1, 64]
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %el = tensor.empty() : tensor<2x2x128xf32>
  %r:2 = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e, %l = %el) -> (tensor<2x2x128x16xf16>, tensor<2x2x128xf32>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %st = tensor.extract_slice %sink[%j] [1] [1] : tensor<2xf32> to tensor<1xf32>
    %ot, %lt = attn.attention %qt, %kt, %kt sink(%st : tensor<1xf32>) at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>, tensor<1x1x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
      tensor.parallel_insert_slice %lt into %l[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<1x1x64xf32> into tensor<2x2x128xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r#0, %r#1 : tensor<2x2x128x16xf16>, tensor<2x2x128xf32>
}
