// RUN: attn-opt %s --attn-set-schedule=splits=0 --split-input-file --verify-diagnostics

// expected-error@below {{expected block-m, block-n and stages from 0 to 2^30 and splits from 1 to 2^30, got 0, 0, 0 and 0}}
module {}
