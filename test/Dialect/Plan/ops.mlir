// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK: module attributes {plan.target = #plan.target<"sm_90a">}
module attributes {plan.target = #plan.target<"sm_90a">} {
  // CHECK: func.func private @few_rows({{.*}}) attributes {plan.way = "few", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 2, least = 0, most = 64>]]}
  func.func private @few_rows(tensor<?x?x?x128xbf16>) attributes {
      plan.way = "few", plan.when = [[#plan.range<argument = 0, dim = 2, least = 0, most = 64>]]}

  // CHECK: plan.when = {{\[\[}}#plan.range<argument = 0, dim = 1, least = 0, most = 8, per = <argument = 1, dim = 1>>]]
  func.func private @groups(memref<?x?x?x128xbf16>, memref<?x?x?x128xbf16>) attributes {
      plan.when = [[#plan.range<argument = 0, dim = 1, least = 0, most = 8, per = <argument = 1, dim = 1>>]]}

  // CHECK: plan.when = {{\[\[}}#plan.range<least = 0, most = 1, parts = <blocks = [#plan.extent<argument = 0, dim = 0>], keys = #plan.extent<argument = 0, dim = 2, divisor = 512>, most = 64>>]]
  func.func private @one_part(memref<?x?x?x128xbf16>) attributes {
      plan.when = [[#plan.range<least = 0, most = 1, parts = <blocks = [#plan.extent<argument = 0, dim = 0>], keys = #plan.extent<argument = 0, dim = 2, divisor = 512>, most = 64>>]]}

  // CHECK: plan.when = {{\[\[}}#plan.range<argument = 0, dim = 0, least = 1, most = 80>, #plan.range<least = 4000, device = "memory_rate">],
  // CHECK-SAME:            [#plan.range<argument = 0, dim = 0, least = 129, most = 160>]]
  func.func private @fast_device(memref<?xf32>) attributes {
      plan.way = "narrow",
      plan.when = [[#plan.range<argument = 0, dim = 0, least = 1, most = 80>, #plan.range<least = 4000, device = "memory_rate">],
                   [#plan.range<argument = 0, dim = 0, least = 129, most = 160>]]}
}
