// RUN: attn-opt %s "--attn-make-ways=slots=8 way=long" --attn-set-schedule=target=cuda --split-input-file | FileCheck %s
// RUN: attn-opt %s "--attn-make-ways=slots=8 way=long splits=4" "--attn-set-schedule=target=cuda splits=4" --split-input-file | FileCheck %s --check-prefix=GIVEN

// Calls whose parts would be one have a copy, in front, whose keys are whole; the ranges of packed rows hold too.
// CHECK-LABEL: func.func @decode_packed_whole(
// CHECK-SAME:    plan.way = "packed-whole", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 2, least = 0, most = 16>,
// CHECK-SAME:      #plan.range<argument = 0, dim = 1, least = 0, most = 8, per = <argument = 1, dim = 1>>,
// CHECK-SAME:      #plan.range<least = 0, most = 1, parts = <blocks = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 1, dim = 1>, #plan.extent<argument = 0, dim = 2, divisor = 8>],
// CHECK-SAME:        keys = #plan.extent<argument = 1, dim = 2, divisor = [[KEYS:[0-9]+]]>, most = 64>>]]
// CHECK-NOT:     fill
// CHECK-NOT:     splits
// CHECK:         #attn.schedule<block_m = 64, block_n = 80, stages = 2, resident = 2>
// CHECK-LABEL: func.func @decode_packed(
// CHECK-SAME:    plan.way = "packed", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 2, least = 0, most = 16>, #plan.range<argument = 0, dim = 1, least = 0, most = 8, per = <argument = 1, dim = 1>>]]
// CHECK:         splits = 64, {{.*}}fill = true, resident = 2
// CHECK-LABEL: func.func @decode(
// CHECK-NOT:     fill
// CHECK:         return
// Parts that are given hold.
// GIVEN-NOT:   _whole
// GIVEN:       splits = 4
func.func @decode(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

// Where types say that all calls have packed rows, the copy is for the number of parts alone.
// CHECK-LABEL: func.func @static_packed_whole(
// CHECK-SAME:    plan.when = {{\[\[}}#plan.range<least = 0, most = 1, parts = <blocks = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 1, dim = 1>, #plan.extent<argument = 0, dim = 2, divisor = 8>]
// CHECK-LABEL: func.func @static(
// CHECK-NOT:     plan.when
// CHECK:         fill = true
func.func @static(%q: tensor<2x32x1x128xbf16>, %k: tensor<2x4x4096x128xbf16>, %v: tensor<2x4x4096x128xbf16>) -> tensor<2x32x1x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<2x32x1x128xbf16>, tensor<2x4x4096x128xbf16>, tensor<2x4x4096x128xbf16> -> tensor<2x32x1x128xbf16>
  return %o : tensor<2x32x1x128xbf16>
}

// -----

// Rows that are not packed keep the parts that somebody wrote.
// CHECK-LABEL: func.func @written(
// CHECK-NOT:   _whole
// CHECK:       splits = 64
func.func @written(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %p = tensor.cast %q : tensor<?x?x?x128xbf16> to tensor<2x?x?x128xbf16>
  %r = tensor.cast %p : tensor<2x?x?x128xbf16> to tensor<?x?x?x128xbf16>
  %o = attn.attention %r, %k, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 64, splits = 64, fill = true>}
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
