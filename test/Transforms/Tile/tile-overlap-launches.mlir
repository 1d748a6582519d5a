// RUN: attn-opt %s --tile-overlap-launches --remarks-filter=".*" 2>&1 | FileCheck %s

// Of the kernels of a way all but the first start while the one before ends; what stands before a way is the caller's.

// CHECK-DAG: 'attention_short_merge' starts while 'attention_short' ends
// CHECK-DAG: 'attention' starts while 'attention_search' ends
// CHECK-DAG: 'attention_merge' starts while 'attention' ends

// CHECK-LABEL: func.func @attention_short(
// CHECK-NOT:     programmatic
// CHECK-LABEL: func.func @attention_short_merge(
// CHECK-SAME:    #tile.kernel<warpgroups = 1, grid = {{\[\[}}4]], programmatic = true>
// CHECK-LABEL: func.func @attention_search(
// CHECK-NOT:     programmatic
// CHECK-LABEL: func.func @attention(
// CHECK-SAME:    #tile.kernel<warpgroups = 2, grid = {{\[\[}}8]], programmatic = true, schedule = <stages = 2, stay = true>>
// CHECK-LABEL: func.func @attention_merge(
// CHECK-SAME:    programmatic = true
func.func @attention_short(%o: memref<?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]]>, plan.way = "short", plan.when = [[#plan.range<argument = 0, dim = 0, least = 0, most = 64>]]} {
  return
}
func.func @attention_short_merge(%o: memref<?xf32>) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]]>, plan.way = "short", plan.when = [[#plan.range<argument = 0, dim = 0, least = 0, most = 64>]]} {
  return
}
func.func @attention_search(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]]>} {
  return
}
func.func @attention(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [[8]], schedule = <stages = 2, stay = true>>} {
  return
}
func.func @attention_merge(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[4]]>} {
  return
}
