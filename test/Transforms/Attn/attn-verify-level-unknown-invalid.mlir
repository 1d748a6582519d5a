// RUN: attn-opt %s --attn-verify-level=level=kitchen --split-input-file --verify-diagnostics

// expected-error@below {{expected level problem, grid or online, got 'kitchen'}}
module {}
