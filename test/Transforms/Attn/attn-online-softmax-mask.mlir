// RUN: attn-opt %s --attn-online-softmax --canonicalize | FileCheck %s

// The mask region and the position move over unchanged; without a score region the scale still takes log2(e).
// CHECK-LABEL: func @mask(
func.func @mask(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf16>) {
  // CHECK: %[[SCALE:.*]] = arith.constant 0.360673755 : f32
  // CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[T:.*]]) =
  // CHECK: attn.online_attention {{.*}} scale(%[[SCALE]]) at(%[[B]], %[[H]], %[[T]], %c0)
  // CHECK-NOT: score
  // CHECK: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
  // CHECK-NEXT: arith.cmpi sle, %[[N]], %[[M]]
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
      mask(%b, %h, %m, %n1) {
        %keep = arith.cmpi sle, %n1, %m : index
        attn.yield %keep : i1
      }
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}
