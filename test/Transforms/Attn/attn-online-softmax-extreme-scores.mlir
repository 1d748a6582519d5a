// RUN: attn-opt %s --attn-online-softmax | FileCheck %s

// Finite scores stay finite in base 2, and -inf stays -inf.
// CHECK-LABEL: func @lowest(
// CHECK: score(%[[S:[a-z0-9]+]],
// CHECK: %[[T:.*]] = arith.select %{{.*}}, %[[S]], %{{.*}} : f32
// CHECK: %[[BELOW:.*]] = arith.minimumf %[[T]], %{{.*}} : f32
// CHECK: %[[BOUNDED:.*]] = arith.maximumf %[[BELOW]], %{{.*}} : f32
// CHECK: %[[DROPPED:.*]] = arith.cmpf oeq, %[[T]], %[[LOWEST:.*]] : f32
// CHECK: %[[SAFE:.*]] = arith.select %[[DROPPED]], %[[LOWEST]], %[[BOUNDED]] : f32
// CHECK: %[[BASE2:.*]] = arith.mulf %[[SAFE]], %{{.*}} : f32
// CHECK: attn.yield %[[BASE2]]
!t = tensor<1x1x64x16xf16>
func.func @lowest(%q: !t, %o: !t) -> !t {
  %r = scf.forall (%i, %j, %l) in (1, 1, 1) shared_outs(%out = %o) -> (!t) {
    %ot = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
      score(%s, %b, %h, %m, %n) {
        %min = arith.constant -3.40282347E+38 : f32
        %near = arith.cmpi slt, %n, %m : index
        %t = arith.select %near, %s, %min : f32
        attn.yield %t : f32
      } : !t, !t, !t -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %out[0, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t into !t
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !t
}

// What is read may be such a score as a term.
// CHECK-LABEL: func @term(
// CHECK: arith.minimumf
func.func @term(%q: !t, %o: !t, %bias: tensor<64xbf16>) -> !t {
  %r = scf.forall (%i, %j, %l) in (1, 1, 1) shared_outs(%out = %o) -> (!t) {
    %ot = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
      score(%s, %b, %h, %m, %n) {
        %x = tensor.extract %bias[%n] : tensor<64xbf16>
        %wide = arith.extf %x : bf16 to f32
        %t = arith.addf %s, %wide : f32
        attn.yield %t : f32
      } : !t, !t, !t -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %out[0, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t into !t
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !t
}

// A factor that is read is taken for moderate, and -inf needs no bound.
// CHECK-LABEL: func @moderate(
// CHECK-NOT: arith.minimumf
func.func @moderate(%q: !t, %o: !t, %slopes: tensor<1xf32>) -> !t {
  %r = scf.forall (%i, %j, %l) in (1, 1, 1) shared_outs(%out = %o) -> (!t) {
    %ot = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
      score(%s, %b, %h, %m, %n) {
        %slope = tensor.extract %slopes[%h] : tensor<1xf32>
        %d = arith.index_cast %n : index to i32
        %f = arith.sitofp %d : i32 to f32
        %x = arith.mulf %slope, %f : f32
        %t = arith.subf %s, %x : f32
        %ninf = arith.constant 0xFF800000 : f32
        %near = arith.cmpi slt, %n, %m : index
        %u = arith.select %near, %t, %ninf : f32
        attn.yield %u : f32
      } : !t, !t, !t -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %out[0, 0, 0, 0] [1, 1, 64, 16] [1, 1, 1, 1] : !t into !t
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : !t
}
