// RUN: attn-opt %s --attn-set-target=target=sm_20 --verify-diagnostics
// RUN: not attn-opt %s --attn-to-online=target=sm_20 2>&1 | FileCheck %s

// CHECK: expected the target cpu, cuda or sm_90a, sm_103a, sm_100a, sm_120a, sm_89, sm_86 or sm_80, got 'sm_20'
// expected-error@below {{expected the target cpu, cuda or sm_90a, sm_103a, sm_100a, sm_120a, sm_89, sm_86 or sm_80, got 'sm_20'}}
module {}
