// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a soft cap above 0 that f32 and its reciprocal can hold, got 0}}
func.func private @softcap_c1() attributes {a = #attn.softcap<0.0 : f32>}

// -----

// expected-error@+1 {{expected a soft cap above 0 that f32 and its reciprocal can hold, got -3.000000e+01}}
func.func private @softcap_c1_negative() attributes {a = #attn.softcap<-30.0 : f32>}

// -----

// expected-error@+1 {{expected a soft cap above 0 that f32 and its reciprocal can hold, got nan}}
func.func private @softcap_c1_nan() attributes {a = #attn.softcap<0x7FC00000 : f32>}

// -----

// expected-error@+1 {{expected a soft cap above 0 that f32 and its reciprocal can hold, got 1.000000e+300}}
func.func private @softcap_c1_f64() attributes {a = #attn.softcap<1.0e300 : f64>}

// -----

// expected-error@+1 {{expected a soft cap above 0 that f32 and its reciprocal can hold, got 1.000000e-39}}
func.func private @softcap_c1_tiny() attributes {a = #attn.softcap<1.0e-39 : f64>}
