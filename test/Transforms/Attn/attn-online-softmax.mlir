// RUN: attn-opt %s --attn-online-softmax --canonicalize | FileCheck %s

// The state starts as (0, -inf, 0), absorbs all keys and is normalized; slices lose the dimensions B and H.
// CHECK-LABEL: func @online(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x2x128x16xf16>, %[[K:[a-z0-9]+]]: tensor<2x2x?x16xf16>, %[[N:[a-z0-9]+]]: index)
func.func @online(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf16>) {
  // CHECK-DAG: %[[INF:.*]] = arith.constant 0xFF800000 : f32
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[M:.*]]) =
  // CHECK: %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[M]], 0] {{.*}} to tensor<64x16xf16>
  // CHECK: %[[KT:.*]] = tensor.extract_slice %[[K]][%[[B]], %[[H]], 0, 0] [1, 1, %[[N]], 16] {{.*}} to tensor<?x16xf16>
  // CHECK: %[[ACC:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<64x16xf32>)
  // CHECK: %[[MAX:.*]] = linalg.fill ins(%[[INF]] : f32) outs(%{{.*}} : tensor<64xf32>)
  // CHECK: %[[SUM:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<64xf32>)
  // CHECK: %[[STATE:.*]]:3 = attn.online_attention %[[QT]], %[[KT]], %{{.*}} at(%[[B]], %[[H]], %[[M]], %c0) outs(%[[ACC]], %[[MAX]], %[[SUM]]) {attn.schedule
  // CHECK: %[[O:.*]] = attn.normalize %[[STATE]]#0, %[[STATE]]#1, %[[STATE]]#2 outs(%{{.*}}) : {{.*}} -> tensor<64x16xf16>
  // CHECK: tensor.parallel_insert_slice %[[O]] into %{{.*}}[%[[B]], %[[H]], %[[M]], 0] [1, 1, 64, 16]
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}
