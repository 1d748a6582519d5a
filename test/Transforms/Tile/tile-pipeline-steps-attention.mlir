// RUN: attn-opt %s --tile-assign-delays --tile-pipeline-steps | FileCheck %s

!s = tensor<64x32xf32>
!p = tensor<64x32xbf16>
!o = tensor<64x64xf32>
!kernel = memref<?x64xbf16>

// The product with the values of a step is started by the next one, behind its scores; the last one by nobody but the end.
// CHECK-LABEL: func.func @loop
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x64xbf16>, %[[K:[^:]*]]: memref<?x64xbf16>, %[[V:[^:]*]]: memref<?x64xbf16>
func.func @loop(%q: !kernel, %k: !kernel, %v: !kernel, %o: memref<?x64xf32>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %none = tile.broadcast %zero : f32 -> !o
  %qs = tile.load %q[%c0, %c0] : !kernel -> tensor<64x64xbf16>
  // CHECK: %[[S0:.*]] = tile.mma {{.*}} {transpose_rhs}
  // CHECK: %[[P0:.*]] = arith.truncf
  // CHECK-NOT: tile.mma
  %k0 = tile.load %k[%c0, %c0] : !kernel -> tensor<32x64xbf16>
  %s0 = tile.mma %qs, %k0 {transpose_rhs} : tensor<64x64xbf16>, tensor<32x64xbf16> -> !s
  %p0 = arith.truncf %s0 : !s to !p
  %v0 = tile.load %v[%c0, %c0] : !kernel -> tensor<32x64xbf16>
  %o0 = tile.mma %p0, %v0, %none : !p, tensor<32x64xbf16>, !o -> !o
  // CHECK: %[[R:.*]]:3 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[P:.*]] = %[[P0]], %[[AT:.*]] = %c0
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    // CHECK: %[[S:.*]] = tile.mma {{.*}} {transpose_rhs}
    // CHECK: %[[VJ:.*]] = tile.load %[[V]][%[[AT]], %c0]
    // CHECK: %[[O:.*]] = tile.mma %[[P]], %[[VJ]], %[[ACC]]
    // CHECK: %[[NEXT:.*]] = arith.truncf %[[S]]
    // CHECK: %[[SCALED:.*]] = arith.addf %[[O]], %[[O]]
    // CHECK: scf.yield %[[SCALED]], %[[NEXT]], %[[J]]
    %kj = tile.load %k[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %s = tile.mma %qs, %kj {transpose_rhs} : tensor<64x64xbf16>, tensor<32x64xbf16> -> !s
    %p = arith.truncf %s : !s to !p
    %scaled = arith.addf %acc, %acc : !o
    %vj = tile.load %v[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %oj = tile.mma %p, %vj, %scaled : !p, tensor<32x64xbf16>, !o -> !o
    scf.yield %oj : !o
  }
  // CHECK: %[[LAST:.*]] = tile.load %[[V]][%[[R]]#2, %c0]
  // CHECK: %[[END:.*]] = tile.mma %[[R]]#1, %[[LAST]], %[[R]]#0
  // CHECK: tile.store %[[END]]
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// A step under a condition leaves what is pending as it is.
// CHECK-LABEL: func.func @condition
func.func @condition(%q: !kernel, %k: !kernel, %v: !kernel, %o: memref<?x64xf32>, %n: index, %live: i1) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %none = tile.broadcast %zero : f32 -> !o
  %qs = tile.load %q[%c0, %c0] : !kernel -> tensor<64x64xbf16>
  %k0 = tile.load %k[%c0, %c0] : !kernel -> tensor<32x64xbf16>
  %s0 = tile.mma %qs, %k0 {transpose_rhs} : tensor<64x64xbf16>, tensor<32x64xbf16> -> !s
  %p0 = arith.truncf %s0 : !s to !p
  %v0 = tile.load %v[%c0, %c0] : !kernel -> tensor<32x64xbf16>
  %o0 = tile.mma %p0, %v0, %none : !p, tensor<32x64xbf16>, !o -> !o
  // CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}, %[[AT:.*]] = %c0
  %r = scf.for %j = %c32 to %n step %c32 iter_args(%acc = %o0) -> !o {
    // CHECK: %[[IF:.*]]:3 = scf.if
    %step = scf.if %live -> !o {
      %kj = tile.load %k[%j, %c0] : !kernel -> tensor<32x64xbf16>
      %s = tile.mma %qs, %kj {transpose_rhs} : tensor<64x64xbf16>, tensor<32x64xbf16> -> !s
      %p = arith.truncf %s : !s to !p
      %vj = tile.load %v[%j, %c0] : !kernel -> tensor<32x64xbf16>
      // CHECK: tile.mma %[[P]], {{.*}}, %[[ACC]]
      // CHECK: scf.yield
      %oj = tile.mma %p, %vj, %acc : !p, tensor<32x64xbf16>, !o -> !o
      scf.yield %oj : !o
    } else {
      // CHECK: else
      // CHECK-NEXT: scf.yield %[[ACC]], %[[P]], %[[AT]]
      scf.yield %acc : !o
    }
    // CHECK: scf.yield %[[IF]]#0, %[[IF]]#1, %[[IF]]#2
    scf.yield %step : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// The first loop is certain to run: its first iteration has nothing to start. The product of the others is on its own, before
// their scores; the next loop overlaps as ever.
// CHECK-LABEL: func.func @certain_loop
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x64xbf16>, %[[K:[^:]*]]: memref<?x64xbf16>, %[[V:[^:]*]]: memref<?x64xbf16>
func.func @certain_loop(%q: !kernel, %k: !kernel, %v: !kernel, %o: memref<?x64xf32>, %end: index, %full: index, %other: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %none = tile.broadcast %zero : f32 -> !o
  %qs = tile.load %q[%c0, %c0] : !kernel -> tensor<64x64xbf16>
  // CHECK: %[[NONE:.*]] = tile.broadcast {{.*}} -> tensor<64x64xf32>
  // CHECK: %[[BEGIN:.*]] = arith.minsi
  // CHECK: %[[NOTHING:.*]] = tile.broadcast {{.*}} : bf16 -> tensor<64x32xbf16>
  // CHECK: %[[A:.*]]:3 = scf.for %[[I:.*]] = %[[BEGIN]] to {{.*}} iter_args(%[[ACC:.*]] = %[[NONE]], %[[P:.*]] = %[[NOTHING]], %[[AT:.*]] = %[[BEGIN]])
  %last = arith.subi %end, %c32 : index
  %begin = arith.minsi %full, %last : index
  %until = arith.maxsi %other, %end : index
  %a = scf.for %j = %begin to %until step %c32 iter_args(%acc = %none) -> !o {
    // CHECK: %[[BEHIND:.*]] = arith.cmpi ne, %[[I]], %[[BEGIN]]
    // CHECK: %[[NOW:.*]] = scf.if %[[BEHIND]]
    // CHECK:   %[[VI:.*]] = tile.load %[[V]][%[[AT]], %c0]
    // CHECK:   %[[O:.*]] = tile.mma %[[P]], %[[VI]], %[[ACC]]
    // CHECK:   scf.yield %[[O]]
    // CHECK: else
    // CHECK:   scf.yield %[[ACC]]
    // CHECK: %[[S:.*]] = tile.mma {{.*}} {transpose_rhs}
    // CHECK: %[[NEXT:.*]] = arith.truncf %[[S]]
    // CHECK: %[[SCALED:.*]] = arith.addf %[[NOW]], %[[NOW]]
    // CHECK-NOT: tile.mma
    // CHECK: scf.yield %[[SCALED]], %[[NEXT]], %[[I]]
    %kj = tile.load %k[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %s = tile.mma %qs, %kj {transpose_rhs} : tensor<64x64xbf16>, tensor<32x64xbf16> -> !s
    %p = arith.truncf %s : !s to !p
    %scaled = arith.addf %acc, %acc : !o
    %vj = tile.load %v[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %oj = tile.mma %p, %vj, %scaled : !p, tensor<32x64xbf16>, !o -> !o
    scf.yield %oj : !o
  }
  // CHECK: %[[B:.*]]:3 = scf.for %[[J:.*]] = %c0 to {{.*}} iter_args(%[[ACC:.*]] = %[[A]]#0, %[[P:.*]] = %[[A]]#1, %[[AT:.*]] = %[[A]]#2)
  // CHECK-NOT: scf.if
  // CHECK: tile.mma {{.*}} {transpose_rhs}
  // CHECK: tile.mma %[[P]], {{.*}}, %[[ACC]]
  %b = scf.for %j = %c0 to %full step %c32 iter_args(%acc = %a) -> !o {
    %kj = tile.load %k[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %s = tile.mma %qs, %kj {transpose_rhs} : tensor<64x64xbf16>, tensor<32x64xbf16> -> !s
    %p = arith.truncf %s : !s to !p
    %vj = tile.load %v[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %oj = tile.mma %p, %vj, %acc : !p, tensor<32x64xbf16>, !o -> !o
    scf.yield %oj : !o
  }
  // CHECK: %[[END:.*]] = tile.mma %[[B]]#1, {{.*}}, %[[B]]#0
  // CHECK: tile.store %[[END]]
  tile.store %b to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}

// Without a first step of its own, a loop that may not run stays as it is.
// CHECK-LABEL: func.func @no_first_step
func.func @no_first_step(%q: !kernel, %k: !kernel, %v: !kernel, %o: memref<?x64xf32>, %n: index) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[], [], []]>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %none = tile.broadcast %zero : f32 -> !o
  %qs = tile.load %q[%c0, %c0] : !kernel -> tensor<64x64xbf16>
  // CHECK: scf.for {{.*}} iter_args(%{{[^,]*}}) -> (tensor<64x64xf32>)
  %r = scf.for %j = %c0 to %n step %c32 iter_args(%acc = %none) -> !o {
    %kj = tile.load %k[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %s = tile.mma %qs, %kj {transpose_rhs} : tensor<64x64xbf16>, tensor<32x64xbf16> -> !s
    %p = arith.truncf %s : !s to !p
    %vj = tile.load %v[%j, %c0] : !kernel -> tensor<32x64xbf16>
    %oj = tile.mma %p, %vj, %acc : !p, tensor<32x64xbf16>, !o -> !o
    scf.yield %oj : !o
  }
  tile.store %r to %o[%c0, %c0] : !o, memref<?x64xf32>
  return
}
