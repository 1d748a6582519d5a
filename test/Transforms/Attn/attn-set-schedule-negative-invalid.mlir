// RUN: attn-opt %s --attn-set-schedule=block-m=-1 --split-input-file --verify-diagnostics

// expected-error@below {{expected block-m, block-n and stages from 0 to 2^30 and splits from 1 to 2^30, got -1, 0, 0 and 1}}
module {}
