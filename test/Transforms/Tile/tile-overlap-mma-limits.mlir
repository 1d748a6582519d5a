// RUN: attn-opt %s --tile-overlap-mma | FileCheck %s

!tile = !tile.shared<64x64xbf16, swizzle = 128>
!result = tensor<64x64xf32, #tile.acc<units = 1>>
!half = tensor<64x64xbf16, #tile.acc<units = 1>>
!a = tensor<64x64xbf16, #tile.operand_a<units = 1>>
#compute = #tile.role<name = "compute", warpgroups = 1, registers = 240>
#load = #tile.role<name = "load", warpgroups = 1, registers = 24, elected = true>
#kernel = #tile.kernel<warpgroups = 1, grid = []>

// Two products that do not depend on each other are in flight together; the stage of the first is given back when it is done.
// CHECK-LABEL: func.func @together
func.func @together(%k: !tile, %v: !tile, %empty: !tile.barrier<1>, %slot: !tile.slot<1>) attributes {tile.kernel = #kernel, tile.roles = [#compute]} {
  // CHECK:      %[[S:.*]] = tile.mma_async {{.*}} {tile.role = "compute", transpose_rhs}
  // CHECK-NEXT: tile.mma_commit {tile.role = "compute"}
  // CHECK-NEXT: %[[T:.*]] = tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: %[[SUM:.*]] = tile.mma_wait 1, %[[S]] : {{.*}} {tile.role = "compute"}
  // CHECK-NEXT: tile.barrier_arrive
  // CHECK-NEXT: math.exp2 %[[SUM]]
  // CHECK-NEXT: %[[VALUE:.*]] = tile.mma_wait 0, %[[T]]
  // CHECK-NEXT: math.exp2 %[[VALUE]]
  %s = tile.mma %k, %k {tile.role = "compute", transpose_rhs} : !tile, !tile -> !result
  tile.barrier_arrive %empty[%slot] {tile.role = "compute"} : !tile.barrier<1>
  %t = tile.mma %v, %v {tile.role = "compute"} : !tile, !tile -> !result
  %e = math.exp2 %s : !result
  %f = math.exp2 %t : !result
  return
}

// The release does not wait for a use that comes after the stage is filled again, nor after a loop that may need it.
// CHECK-LABEL: func.func @fill
func.func @fill(%k: !tile, %empty: !tile.barrier<1>, %slot: !tile.slot<1>, %n: index) attributes {tile.kernel = #kernel, tile.roles = [#load, #compute]} {
  %c0 = arith.constant 0 : index
  // CHECK:      tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: tile.mma_wait 0
  // CHECK-NEXT: tile.barrier_arrive
  // CHECK-NEXT: tile.barrier_wait previous
  %s = tile.mma %k, %k {tile.role = "compute"} : !tile, !tile -> !result
  tile.barrier_arrive %empty[%slot] {tile.role = "compute"} : !tile.barrier<1>
  tile.barrier_wait previous %empty[%slot] {tile.role = "load"} : !tile.barrier<1>
  // CHECK:      tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: tile.mma_wait 0
  // CHECK:      scf.for
  %t = tile.mma %k, %k {tile.role = "compute"} : !tile, !tile -> !result
  scf.for %i = %c0 to %n step %n {
    tile.sync {tile.role = "compute"}
  }
  %e = math.exp2 %s : !result
  %f = math.exp2 %t : !result
  return
}

// Nobody meets others, or overwrites shared memory, while a product of theirs may read it.
// CHECK-LABEL: func.func @meet
func.func @meet(%k: !tile, %p: !tile, %x: !half) attributes {tile.kernel = #kernel, tile.roles = [#compute]} {
  %c1 = arith.constant 1 : index
  // CHECK:      tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: %[[S:.*]] = tile.mma_wait 0
  // CHECK-NEXT: tile.named_barrier
  %s = tile.mma %k, %p {tile.role = "compute"} : !tile, !tile -> !result
  tile.named_barrier sync %c1 threads 128 {tile.role = "compute"}
  tile.store %x to %p {tile.role = "compute"} : !half, !tile
  // CHECK:      tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: tile.mma_wait 0
  // CHECK-NEXT: tile.store
  %t = tile.mma %k, %p {tile.role = "compute"} : !tile, !tile -> !result
  tile.store %x to %p {tile.role = "compute"} : !half, !tile
  %e = math.exp2 %s : !result
  %f = math.exp2 %t : !result
  return
}

// An accumulator is not read while a product adds to it, and what replaces a lhs in registers comes after.
// CHECK-LABEL: func.func @registers
func.func @registers(%k: !tile, %a: !a, %acc: !result, %y: !result) attributes {tile.kernel = #kernel, tile.roles = [#compute]} {
  // CHECK:      tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: tile.mma_wait 0
  // CHECK-NEXT: arith.addf
  %s = tile.mma %k, %k, %acc {tile.role = "compute"} : !tile, !tile, !result -> !result
  %twice = arith.addf %acc, %acc : !result
  // CHECK:      tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: tile.mma_wait 0
  // CHECK-NEXT: arith.truncf
  %t = tile.mma %a, %k {tile.role = "compute"} : !a, !tile -> !result
  %h = arith.truncf %y : !result to !half
  %b = tile.convert_layout %h : !half -> !a
  %u = tile.mma %b, %k {tile.role = "compute"} : !a, !tile -> !result
  return
}

// So does one that a region brings into the layout: the next product of this turn reads it.
// CHECK-LABEL: func.func @in_a_region
func.func @in_a_region(%k: !tile, %a: !a, %y: !result, %c: i1) attributes {tile.kernel = #kernel, tile.roles = [#compute]} {
  // CHECK:      tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: tile.mma_wait 0
  // CHECK-NEXT: arith.truncf
  // CHECK-NEXT: scf.if
  %t = tile.mma %a, %k {tile.role = "compute"} : !a, !tile -> !result
  %h = arith.truncf %y : !result to !half
  %b = scf.if %c -> !a {
    %d = tile.convert_layout %h : !half -> !a
    scf.yield %d : !a
  } else {
    scf.yield %a : !a
  }
  %u = tile.mma %b, %k {tile.role = "compute"} : !a, !tile -> !result
  return
}

// Who waits for a product waits for those before it as well, in one wait.
// CHECK-LABEL: func.func @inOrder
func.func @inOrder(%k: !tile, %v: !tile, %empty: !tile.barrier<1>, %slot: !tile.slot<1>, %out: memref<64x64xf32>) attributes {tile.kernel = #kernel, tile.roles = [#compute]} {
  %c0 = arith.constant 0 : index
  // CHECK:      %[[S:.*]] = tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: %[[T:.*]] = tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: %[[BOTH:.*]]:2 = tile.mma_wait 0, %[[S]], %[[T]]
  // CHECK-NEXT: tile.barrier_arrive
  // CHECK-NEXT: tile.store %[[BOTH]]#1
  // CHECK-NEXT: math.exp2 %[[BOTH]]#0
  %s = tile.mma %k, %k {tile.role = "compute"} : !tile, !tile -> !result
  tile.barrier_arrive %empty[%slot] {tile.role = "compute"} : !tile.barrier<1>
  %t = tile.mma %v, %v {tile.role = "compute"} : !tile, !tile -> !result
  tile.store %t to %out[%c0, %c0] {tile.role = "compute"} : !result, memref<64x64xf32>
  %e = math.exp2 %s : !result
  return
}

// Two waits where values that go through the first product's are the second's.
// CHECK-LABEL: func.func @narrowed_and_unread
func.func @narrowed_and_unread(%k: !tile, %a: !a) attributes {tile.kernel = #kernel, tile.roles = [#compute]} {
  // CHECK:      %[[T:.*]] = tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: %[[U:.*]] = tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: %[[SECOND:.*]] = tile.mma_wait 0, %[[U]]
  // CHECK-NEXT: %[[BOTH:.*]]:2 = tile.mma_wait 1, %[[T]], %[[SECOND]]
  // CHECK-NEXT: arith.truncf %[[BOTH]]#1
  %t = tile.mma %a, %k {tile.role = "compute"} : !a, !tile -> !result
  %u = tile.mma %k, %k {tile.role = "compute"} : !tile, !tile -> !result
  %h = arith.truncf %u : !result to !half
  return
}

// One wait for three, of which two have one already.
// CHECK-LABEL: func.func @three_in_order
func.func @three_in_order(%k: !tile, %v: !tile, %out: memref<64x64xf32>) attributes {tile.kernel = #kernel, tile.roles = [#compute]} {
  %c0 = arith.constant 0 : index
  // CHECK:      %[[S:.*]] = tile.mma_async
  // CHECK:      %[[T:.*]] = tile.mma_async
  // CHECK:      %[[U:.*]] = tile.mma_async
  // CHECK-NEXT: tile.mma_commit
  // CHECK-NEXT: %[[ALL:.*]]:3 = tile.mma_wait 0, %[[T]], %[[S]], %[[U]]
  // CHECK-NEXT: tile.store %[[ALL]]#2
  // CHECK-NEXT: math.exp2 %[[ALL]]#1
  // CHECK-NOT:  tile.mma_wait
  %s = tile.mma %k, %k {tile.role = "compute"} : !tile, !tile -> !result
  %t = tile.mma %v, %v {tile.role = "compute"} : !tile, !tile -> !result
  %u = tile.mma %v, %v {tile.role = "compute"} : !tile, !tile -> !result
  tile.store %u to %out[%c0, %c0] {tile.role = "compute"} : !result, memref<64x64xf32>
  %e = math.exp2 %s : !result
  return
}
