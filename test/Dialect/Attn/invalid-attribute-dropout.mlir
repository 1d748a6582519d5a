// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a probability from 0 to 1, got -1.000000e-01}}
func.func private @dropout_c1() attributes {a = #attn.dropout<-0.1>}

// -----

// expected-error@+1 {{expected a probability from 0 to 1, got 1.500000e+00}}
func.func private @dropout_c1_large() attributes {a = #attn.dropout<1.5>}

// -----

// expected-error@+1 {{expected a probability from 0 to 1, got nan}}
func.func private @dropout_c1_nan() attributes {a = #attn.dropout<0x7FC00000 : f32>}
