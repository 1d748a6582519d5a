// Where a kernel recomputes, a loop around loops hands LLVM no scalar that those inside do not read.
// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s
// RUN: attn-opt %s --convert-tile-to-nvvm --emit-ptx=ptx=%t.ptx -o /dev/null
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx

// CHECK: #[[LICM:.+]] = #llvm.loop_licm<disable = true>
// CHECK: #[[LOOP:.+]] = #llvm.loop_annotation<licm = #[[LICM]]>

// The step of the loop inside is read there, and computed in front; the one behind it is not.
// CHECK-LABEL: llvm.func @recomputes
// CHECK: llvm.mul %{{.*}}, %[[THREE:.+]] : i32
// CHECK: ^bb1
// CHECK: llvm.mul %{{.*}}, %[[FIVE:.+]] : i32
// CHECK: llvm.br ^bb1{{.*}} {loop_annotation = #[[LOOP]]}
// PTX-LABEL: .entry recomputes
// PTX: mul.lo.s32 {{.*}}, 3;
// PTX-NOT: , 5;
// PTX: bra
// PTX: mul.lo.s32 {{.*}}, 5;
func.func @recomputes(%n: index, %to: memref<?xi32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [], schedule = <recompute = true>>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %n step %c1 {
    %step = arith.muli %n, %c3 : index
    scf.for %j = %c0 to %n step %c1 {
      %at = arith.addi %j, %step : index
      %value = arith.index_cast %i : index to i32
      memref.store %value, %to[%at] : memref<?xi32>
    }
    %behind = arith.muli %n, %c5 : index
    %value = arith.index_cast %behind : index to i32
    memref.store %value, %to[%i] : memref<?xi32>
  }
  return
}

// CHECK-LABEL: llvm.func @hoists
// CHECK-NOT: loop_annotation
func.func @hoists(%n: index, %to: memref<?xi32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %value = arith.index_cast %i : index to i32
      memref.store %value, %to[%j] : memref<?xi32>
    }
  }
  return
}
