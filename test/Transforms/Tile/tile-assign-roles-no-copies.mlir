// RUN: attn-opt %S/../../Pipelines/Inputs/causal128.mlir --attn-to-online="target=cuda splits=2" --online-to-tile --tile-to-async | FileCheck %s

// Nothing to copy, nobody to do it: the kernel that joins parts has no roles, and all of its warps compute.
// CHECK-LABEL: func.func @attention_split
// CHECK-SAME:    #tile.kernel<warpgroups = 3
// CHECK:         tile.specialize
// CHECK-LABEL: func.func @attention_merge
// CHECK-SAME:    #tile.kernel<warpgroups = 1
// CHECK-NOT:     tile.specialize
// CHECK-NOT:     tile.barrier
// CHECK:         tile.load {{.*}} -> tensor<4x128xf32, #tile.blocked<vector = 4, lanes = 32, warps = 4>>
// CHECK:         tile.store
