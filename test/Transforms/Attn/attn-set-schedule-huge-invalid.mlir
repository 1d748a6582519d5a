// RUN: attn-opt %s --attn-set-schedule=block-n=9223372036854775807 --split-input-file --verify-diagnostics

// expected-error@below {{expected block-m and block-n from 0 to 2^30 and splits from 1 to 2^30, got 0, 9223372036854775807 and 1}}
module {}
