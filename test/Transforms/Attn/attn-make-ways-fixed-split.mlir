// RUN: attn-opt %s --attn-make-ways="way=auto fixed-split=4096" | FileCheck %s

// No way is for some numbers of keys, for few of them, or for calls whose blocks fill a device.
// CHECK-LABEL: func.func @plain_packed2(
// CHECK-SAME:    [#plan.range<argument = 0, dim = 2, least = 1, most = 32>, #plan.range<argument = 0, dim = 1, least = 1, most = 1, per = <argument = 1, dim = 1>>, #plan.range<argument = 1, dim = 2, least = 0>]
// CHECK:         block_n = 64
// CHECK-NOT:     -whole
// CHECK-LABEL: func.func @plain_packed64(
// CHECK:         block_n = 64
// CHECK-NOT:     func.func @plain_
// CHECK-LABEL: func.func @plain(
func.func @plain(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
