// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm --split-input-file | FileCheck %s

// A kernel that another follows lets it start at once. That one waits behind its barriers, and in front of all roles: whatever they
// touch may come from the first.

// CHECK-LABEL: llvm.func @first
// CHECK:         nvvm.griddepcontrol launch_dependents
// CHECK-NOT:     nvvm.griddepcontrol
// CHECK:         llvm.store
func.func @first(%x: f32, %o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  memref.store %x, %o[%c0] : memref<?xf32>
  return
}

// CHECK-LABEL: llvm.func @second
// CHECK-NOT:     launch_dependents
// CHECK:         nvvm.mbarrier.init
// CHECK:         nvvm.barrier
// CHECK-NOT:     llvm.load
// CHECK:         nvvm.griddepcontrol wait
// CHECK-NEXT:    llvm.
// CHECK:         nvvm.setmaxregister
// CHECK:         llvm.load
func.func @second(%x: f32, %o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], programmatic = true>} {
  %c0 = arith.constant 0 : index
  %b = tile.barrier_init 1 : !tile.barrier<1>
  %n = memref.dim %o, %c0 : memref<?xf32>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_arrive %b : !tile.barrier<1>
  }
  role consumer warpgroups 1 registers 240 {
    %y = memref.load %o[%c0] : memref<?xf32>
    %z = arith.addf %x, %y : f32
    memref.store %z, %o[%n] : memref<?xf32>
  }
  return
}

// -----

// One that touches nothing waits all the same, for the one behind it, which it lets start.
// CHECK-LABEL: llvm.func @idle
// CHECK:         nvvm.griddepcontrol launch_dependents
// CHECK:         nvvm.griddepcontrol wait
// CHECK-NEXT:    llvm.return
func.func @idle(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [], programmatic = true>} {
  return
}
func.func @last(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [], programmatic = true>} {
  return
}
