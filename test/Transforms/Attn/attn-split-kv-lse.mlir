// RUN: attn-opt %s --attn-online-softmax --attn-split-kv --canonicalize | FileCheck %s

// The merge forms the log-sum-exp of all keys.
// CHECK-LABEL: func @lse(
func.func @lse(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf16>, tensor<2x2x128xf32>) {
  // CHECK: attn.normalize
  // CHECK: %[[R:.*]]:2 = scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) = (0, 0, 0) to (2, 2, 128)
  // CHECK: %[[MERGED:.*]]:2 = attn.merge {{.*}} -> tensor<1x1x64x16xf16>, tensor<1x1x64xf32>
  // CHECK: tensor.parallel_insert_slice %[[MERGED]]#1 into %{{.*}}[%[[B]], %[[H]], %[[M]]] [1, 1, 64]
  // CHECK: return %[[R]]#0, %[[R]]#1
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %el = tensor.empty() : tensor<2x2x128xf32>
  %r:2 = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e, %l = %el) -> (tensor<2x2x128x16xf16>, tensor<2x2x128xf32>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot, %lt = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>, tensor<1x1x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
      tensor.parallel_insert_slice %lt into %l[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<1x1x64xf32> into tensor<2x2x128xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r#0, %r#1 : tensor<2x2x128x16xf16>, tensor<2x2x128xf32>
}

// With both parts of the logarithm each part has two numbers for a row, and so has the merge.
// CHECK-LABEL: func @low(
func.func @low(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf16>, tensor<2x2x128xf32>, tensor<2x2x128xf32>) {
  // CHECK: %[[PARTS:.*]]:3 = scf.forall
  // CHECK: attn.normalize {{.*}} tensor<64xf32>, tensor<64xf32> -> {{.*}}, tensor<64xf32>, tensor<64xf32>
  // CHECK: scf.forall
  // CHECK: attn.merge %{{.*}}, %{{.*}} partial_low(%{{.*}} : tensor<3x1x1x64xf32>) {{.*}} -> tensor<1x1x64x16xf16>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %el = tensor.empty() : tensor<2x2x128xf32>
  %ew = tensor.empty() : tensor<2x2x128xf32>
  %r:3 = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e, %l = %el, %w = %ew) -> (tensor<2x2x128x16xf16>, tensor<2x2x128xf32>, tensor<2x2x128xf32>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot, %lt, %wt = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, splits = 3>}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
      tensor.parallel_insert_slice %lt into %l[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<1x1x64xf32> into tensor<2x2x128xf32>
      tensor.parallel_insert_slice %wt into %w[%i, %j, %t] [1, 1, 64] [1, 1, 1] : tensor<1x1x64xf32> into tensor<2x2x128xf32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r#0, %r#1, %r#2 : tensor<2x2x128x16xf16>, tensor<2x2x128xf32>, tensor<2x2x128xf32>
}
