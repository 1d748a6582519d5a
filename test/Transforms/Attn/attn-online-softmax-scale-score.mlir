// RUN: attn-opt %s --attn-online-softmax --canonicalize | FileCheck %s

// A score region comes between the scale and the exponential: its result is multiplied by log2(e) instead.
// CHECK-LABEL: func @default_scale(
func.func @default_scale(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf16>) {
  // CHECK-DAG: %[[SCALE:.*]] = arith.constant 2.500000e-01 : f32
  // CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
  // CHECK: attn.online_attention {{.*}} scale(%[[SCALE]])
  // CHECK: score(%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK: %[[ABS:.*]] = math.absf %[[S]]
  // CHECK: %[[T:.*]] = arith.mulf %[[ABS]], %[[LOG2E]]
  // CHECK: attn.yield %[[T]]
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
      score(%s, %b, %h, %m, %n1) {
        %x = math.absf %s : f32
        attn.yield %x : f32
      }
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}

// CHECK-LABEL: func @user_scale(
// CHECK-SAME: %[[USER:[a-z0-9]+]]: f32)
func.func @user_scale(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index, %scale: f32) -> (tensor<2x2x128x16xf16>) {
  // CHECK: attn.online_attention {{.*}} scale(%[[USER]])
  // CHECK: score(
  // CHECK: arith.mulf
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt scale(%scale) at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
      score(%s, %b, %h, %m, %n1) {
        %x = math.absf %s : f32
        attn.yield %x : f32
      }
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}
