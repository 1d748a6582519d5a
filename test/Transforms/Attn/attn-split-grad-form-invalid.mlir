// RUN: attn-opt %s --attn-split-grad=form=fused --split-input-file --verify-diagnostics

// expected-error@below {{expected form two-pass, got 'fused'}}
module {}
