// RUN: not attn-opt %s 2>&1 | FileCheck %s

// CHECK: error: operation being parsed with an unregistered dialect
"other.op"() : () -> ()
