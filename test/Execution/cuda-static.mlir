// The functions of test/Simulator/static-extents.mlir on a GPU.
// REQUIRES: cuda, sm_90
// RUN: attn-run %S/../Simulator/static-extents.mlir --entry=small --device=cuda --check | FileCheck %s
// RUN: attn-run %S/../Simulator/static-extents.mlir --entry=whole --device=cuda --check | FileCheck %s
// RUN: attn-run %S/../Simulator/static-extents.mlir --entry=one --device=cuda --check | FileCheck %s

// CHECK: device {{ *}}cuda
// CHECK: verdict {{ *}}right
