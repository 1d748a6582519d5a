// RUN: attn-opt %s --tile-make-rings=stages=65 -verify-diagnostics

// expected-error@below {{expected 1 to 64 stages, got 65}}
module {
}
