// RUN: attn-opt %s --convert-tile-to-nvvm | FileCheck %s

// bf16 is the upper half of a word, and no instruction of the unit of exponentials; -|x| is what reads it.

#acc = #tile.acc<units = 1>
!half = tensor<64x8xbf16, #acc>
!tile = tensor<64x8xf32, #acc>

// CHECK-LABEL: llvm.func @widen
func.func @widen(%x: bf16, %y: f32, %o: memref<?x8xf32>, %m: index) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.broadcast %x : bf16 -> !half
  // CHECK-NOT: llvm.fpext
  // CHECK:     %[[WORD:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
  // CHECK-DAG: %[[MASK:.*]] = llvm.mlir.constant(-65536 : i32) : i32
  // CHECK-DAG: %[[HALF:.*]] = llvm.mlir.constant(16 : i32) : i32
  // CHECK-DAG: llvm.and %[[WORD]], %[[MASK]]
  // CHECK-DAG: llvm.shl %[[WORD]], %[[HALF]]
  // CHECK-NOT: llvm.fpext
  %u = arith.extf %t : !half to !tile
  // CHECK:     llvm.inline_asm {{.*}}"abs.f32 $0, $1; neg.f32 $0, $0;"
  // CHECK-NOT: llvm.{{intr.fabs|fneg}}
  %a = math.absf %u : !tile
  %n = arith.negf %a : !tile
  tile.store %n to %o[%m, %zero] : !tile, memref<?x8xf32>
  return
}
