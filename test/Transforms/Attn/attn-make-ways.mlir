// RUN: attn-opt %s --attn-make-ways=way=auto --split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-make-ways=way=long --split-input-file | FileCheck %s --check-prefix=LONG
// RUN: attn-opt %s "--attn-make-ways=way=auto block-n=64" --split-input-file | FileCheck %s --check-prefix=GIVEN

// All ways of the rule, in the order in which a call tries them: decoding by the heads of a group, few rows with many keys, few
// keys on a device whose memory is fast, and short sequences.
// CHECK-LABEL: func.func @plain_packed2_whole(
// CHECK-LABEL: func.func @plain_packed2(
// CHECK-SAME:    plan.way = "packed2", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 2, least = 1, most = 32>, #plan.range<argument = 0, dim = 1, least = 2, most = 2, per = <argument = 1, dim = 1>>],
// CHECK-SAME:      [#plan.range<argument = 0, dim = 2, least = 1, most = 32>, #plan.range<argument = 0, dim = 1, least = 1, most = 1, per = <argument = 1, dim = 1>>, #plan.range<argument = 1, dim = 2, least = 1024>]]
// CHECK:         attn.pack_heads {{.*}} by 2
// CHECK-LABEL: func.func @plain_packed4_whole(
// CHECK-LABEL: func.func @plain_packed4(
// CHECK-LABEL: func.func @plain_packed8_whole(
// CHECK-LABEL: func.func @plain_packed8(
// CHECK-SAME:    #plan.range<argument = 0, dim = 2, least = 1, most = 8>, #plan.range<argument = 0, dim = 1, least = 5, most = 8, per = <argument = 1, dim = 1>>]]
// CHECK-LABEL: func.func @plain_packed16_whole(
// CHECK-LABEL: func.func @plain_packed16(
// CHECK-LABEL: func.func @plain_packed32_whole(
// CHECK-LABEL: func.func @plain_packed32(
// CHECK-LABEL: func.func @plain_packed64_whole(
// CHECK-SAME:    plan.way = "packed64-whole"
// CHECK-LABEL: func.func @plain_packed64(
// CHECK-SAME:    #plan.range<argument = 0, dim = 2, least = 1, most = 1>, #plan.range<argument = 0, dim = 1, least = 33, most = 64, per = <argument = 1, dim = 1>>]]
// CHECK-LABEL: func.func @plain_few(
// CHECK-SAME:    plan.way = "few", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 2, least = 1, most = 128>, #plan.range<argument = 1, dim = 2, least = 2049>]]
// CHECK-LABEL: func.func @plain_narrow(
// CHECK-SAME:    plan.when = {{\[\[}}#plan.range<argument = 1, dim = 2, least = 1, most = 80>, #plan.range<argument = 0, dim = 2, least = 257>, #plan.range<least = 4000, device = "memory_rate">],
// CHECK-SAME:      [#plan.range<argument = 1, dim = 2, least = 129, most = 160>,
// CHECK-LABEL: func.func @plain_short(
// CHECK-LABEL: func.func @plain(
// CHECK-NOT:     plan.when
// LONG-NOT:    @plain_
// GIVEN-NOT:   @plain_
func.func @plain(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// Types say what calls there are: a step of decoding with groups of four heads.
// CHECK-LABEL: func.func @decode_packed4_whole(
// CHECK-NOT:   @decode_
// CHECK-LABEL: func.func @decode(
// CHECK-NOT:     plan.when
// CHECK:         attn.pack_heads {{.*}} by 4
// CHECK-NOT:   @decode
func.func @decode(%q: tensor<?x8x1x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>) -> tensor<?x8x1x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x8x1x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x8x1x64xbf16>
  return %o : tensor<?x8x1x64xbf16>
}

// -----

// Elements of 32 bits have no products.
// CHECK-NOT:   @wide_
// CHECK-LABEL: func.func @wide(
func.func @wide(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
