// RUN: attn-opt %s --attn-split-grad=form=one-pass --split-input-file --verify-diagnostics

// expected-error@below {{expected form two-pass or fused, got 'one-pass'}}
module {}
