// RUN: attn-opt %s --convert-func-to-llvm | FileCheck %s

// Upstream keeps the attributes of a function that it lowers: they verify where arguments are addresses, too.
// CHECK: llvm.func @short({{.*}}) attributes {plan.way = "short", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 0, least = 0, most = 2048>]]}
func.func @short(%x: memref<?xf32>) attributes {plan.way = "short", plan.when = [[#plan.range<argument = 0, dim = 0, least = 0, most = 2048>]]} {
  return
}
