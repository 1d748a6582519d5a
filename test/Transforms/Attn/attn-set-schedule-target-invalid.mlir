// RUN: attn-opt %s --attn-set-schedule=target=abacus --split-input-file --verify-diagnostics

// expected-error@below {{expected target cpu or cuda, got 'abacus'}}
module {}
