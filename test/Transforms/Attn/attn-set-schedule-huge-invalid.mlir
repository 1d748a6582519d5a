// RUN: attn-opt %s --attn-set-schedule=block-n=9223372036854775807 --split-input-file --verify-diagnostics

// expected-error@below {{expected block-m, block-n and stages from 0 to 2^30 and splits from 1 to 2^30, got 0, 9223372036854775807, 0 and 1}}
module {}
