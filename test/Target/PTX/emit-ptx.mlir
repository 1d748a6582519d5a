// RUN: attn-opt %s --convert-tile-to-nvvm --emit-ptx="ptx=%t.ptx plan=%t.json"
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=PLAN --input-file=%t.json
// RUN: not attn-opt %s --emit-ptx 2>&1 | FileCheck %s --check-prefix=TOO-EARLY
// RUN: not attn-opt %s --convert-tile-to-nvvm --emit-ptx=ptx=%t/no/such/folder 2>&1 | FileCheck %s --check-prefix=FILE

// TOO-EARLY: error: emit-ptx: expected room 7 'thread', got room 5 'placed'
// FILE: error: expected to write '{{.*}}/no/such/folder', got No such file or directory

// PTX: .version 8.6
// PTX: .target sm_90a
// PTX: .visible .entry scale(
// PTX: .reqntid 128
// PTX: .minnctapersm 1
// PTX: mul.ftz.f32
// PTX: ex2.approx.ftz.f32
// PTX: st.global

// PLAN: "block": [
// PLAN-NEXT: 128,
// PLAN: "grid": [
// PLAN: "divisor": 64
// PLAN: "name": "scale"
// PLAN: "kind": "pointer"
// PLAN: "kind": "size"
// PLAN: "kind": "scalar",
// PLAN-NEXT: "type": "f32"
// PLAN: "target": "sm_90a"
// PLAN: "version": 6
func.func @scale(%o: memref<?xf32>, %x: f32) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[#plan.extent<argument = 0, dim = 0, divisor = 64>]]>} {
  %block = arith.constant 64 : index
  %b = gpu.block_id x
  %m = arith.muli %b, %block : index
  %t = tile.broadcast %x : f32 -> tensor<64xf32, #tile.row<#tile.acc<units = 1>>>
  %u = arith.mulf %t, %t : tensor<64xf32, #tile.row<#tile.acc<units = 1>>>
  %e = math.exp2 %u : tensor<64xf32, #tile.row<#tile.acc<units = 1>>>
  tile.store %e to %o[%m] : tensor<64xf32, #tile.row<#tile.acc<units = 1>>>, memref<?xf32>
  return
}
