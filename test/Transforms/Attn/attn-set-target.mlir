// RUN: attn-opt %s --attn-set-target=target=sm_90a | FileCheck %s
// RUN: attn-opt %s --attn-to-online=target=sm_90a | FileCheck %s --check-prefix=ROAD

// CHECK: module attributes {plan.target = #plan.target<"sm_90a">}
// ROAD: module attributes {plan.target = #plan.target<"sm_90a">}
// ROAD: attn.online_attention
func.func @attention(%q: tensor<1x1x?x64xbf16>, %k: tensor<1x1x?x64xbf16>, %v: tensor<1x1x?x64xbf16>) -> tensor<1x1x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16>, tensor<1x1x?x64xbf16> -> tensor<1x1x?x64xbf16>
  return %o : tensor<1x1x?x64xbf16>
}
