// RUN: attn-opt %s --attn-make-group-ways --split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-make-group-ways=all-calls --split-input-file | FileCheck %s --check-prefix=ALL

// Calls with two query heads or more for a key head, whose blocks of keys would not fill the device: four under a mask
// count as one. The schedule stays, but for the parts.
// CHECK-LABEL: func.func @masked_groups(
// CHECK-SAME:    plan.way = "groups", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 1, least = 2, per = <argument = 1, dim = 1>>,
// CHECK-SAME:      #plan.range<least = 2, parts = <blocks = [#plan.extent<argument = 1, dim = 0>, #plan.extent<argument = 1, dim = 1>, #plan.extent<argument = 1, dim = 2, divisor = 512>], keys = #plan.extent<argument = 0, dim = 1>, most = 32>>]]
// CHECK:         attn.attention_grad_key_value {{.*}}#attn.schedule<block_m = 64, block_n = 128, splits = 32, stages = 2, consumers = 2, fill = true, recompute = true>
// CHECK-LABEL: func.func @masked(
// CHECK-NOT:     plan.when
// CHECK:         #attn.schedule<block_m = 64, block_n = 128, stages = 2, consumers = 2>
// ALL-LABEL: func.func @masked(
// ALL-NOT:     plan.when
// ALL:         splits = 32, {{.*}}fill = true
func.func @masked(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %do: tensor<?x?x?x64xbf16>, %l: tensor<?x?x?xf32>, %d: tensor<?x?x?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>) {
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %l, %d {attn.schedule = #attn.schedule<block_m = 64, block_n = 128, stages = 2, consumers = 2>}
      mask(%b, %h, %m, %n) {
        %keep = arith.cmpi sle, %n, %m : index
        attn.yield %keep : i1
      } : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>, tensor<?x?x?xf32> -> d_key(tensor<?x?x?x64xbf16>) d_value(tensor<?x?x?x64xbf16>)
  return %dk, %dv : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>
}

// -----

// Without a mask blocks are equal, and few only where they are fewer than multiprocessors. Sizes that types say are numbers.
// CHECK-LABEL: func.func @full_groups(
// CHECK-SAME:    plan.when = {{.*}}parts = <blocks = [#plan.extent<argument = 1, dim = 0>, 2, #plan.extent<argument = 1, dim = 2, divisor = 128>], keys = 16 : i64, most = 32>>]]
func.func @full(%q: tensor<?x16x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %do: tensor<?x16x?x64xbf16>, %l: tensor<?x16x?xf32>, %d: tensor<?x16x?xf32>) -> (tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>) {
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %l, %d {attn.schedule = #attn.schedule<block_m = 64, block_n = 128, stages = 2, consumers = 2>}
      : tensor<?x16x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x16x?x64xbf16>, tensor<?x16x?xf32>, tensor<?x16x?xf32> -> d_key(tensor<?x2x?x64xbf16>) d_value(tensor<?x2x?x64xbf16>)
  return %dk, %dv : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>
}

// -----

// Heads that have keys of their own, f32, arguments of any strides, and lists have no such way.
// CHECK-LABEL: func.func @own(
// CHECK-NOT:     _groups
// ALL-LABEL: func.func @own(
// ALL-NOT:     fill
func.func @own(%q: tensor<?x16x?x64xbf16>, %k: tensor<?x16x?x64xbf16>, %v: tensor<?x16x?x64xbf16>, %do: tensor<?x16x?x64xbf16>, %l: tensor<?x16x?xf32>, %d: tensor<?x16x?xf32>) -> (tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>) {
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %l, %d {attn.schedule = #attn.schedule<block_m = 64, block_n = 128, stages = 2, consumers = 2>}
      : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>, tensor<?x16x?xf32>, tensor<?x16x?xf32> -> d_key(tensor<?x16x?x64xbf16>) d_value(tensor<?x16x?x64xbf16>)
  return %dk, %dv : tensor<?x16x?x64xbf16>, tensor<?x16x?x64xbf16>
}

func.func @wide(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %do: tensor<?x?x?x64xf32>, %l: tensor<?x?x?xf32>, %d: tensor<?x?x?xf32>) -> (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>) {
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %l, %d {attn.schedule = #attn.schedule<block_m = 64, block_n = 64, stages = 2>}
      : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32> -> d_key(tensor<?x?x?x64xf32>) d_value(tensor<?x?x?x64xf32>)
  return %dk, %dv : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>
}

func.func @strided(%q: tensor<?x?x?x64xbf16> {attn.strided}, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %do: tensor<?x?x?x64xbf16>, %l: tensor<?x?x?xf32>, %d: tensor<?x?x?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>) {
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %l, %d {attn.schedule = #attn.schedule<block_m = 64, block_n = 128, stages = 2, consumers = 2>}
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>, tensor<?x?x?xf32> -> d_key(tensor<?x?x?x64xbf16>) d_value(tensor<?x?x?x64xbf16>)
  return %dk, %dv : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>
}

func.func @listed(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %do: tensor<?x?x?x64xbf16>, %l: tensor<?x?x?xf32>, %d: tensor<?x?x?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>) {
  %dk, %dv = attn.attention_grad_key_value %q, %k, %v, %do, %l, %d {attn.schedule = #attn.schedule<block_m = 64, block_n = 128, stages = 2, consumers = 2, lists = true>}
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>, tensor<?x?x?xf32> -> d_key(tensor<?x?x?x64xbf16>) d_value(tensor<?x?x?x64xbf16>)
  return %dk, %dv : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>
}
