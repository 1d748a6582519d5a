// An attention on another one's output: two kernels, and scratch between them.
// REQUIRES: cuda, sm_90
// RUN: attn-run %S/../Tools/AttnRun/chain.mlir --entry=bf16 --device=cuda --shape B=2,H=2,M=70,N=33 --check | FileCheck %s
// RUN: attn-run %S/../Tools/AttnRun/chain.mlir --entry=f16 --device=cuda --shape B=2,H=2,M=700,N=330 --check | FileCheck %s

// CHECK: device {{ *}}cuda
// CHECK: verdict {{ *}}right
