// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile | FileCheck %s

// Matrices are contiguous in their last dimension, but for those that say that they are not.
// CHECK-LABEL: func.func @strided
// CHECK-SAME: memref<?x?xf32, strided<[?, 1]>>
// CHECK-SAME: memref<?x?xf32, strided<[?, ?]>>
func.func @strided(%q: tensor<?x?x?x64xf16>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32> {attn.strided}) -> tensor<?x?x?x64xf16> {
  %o = attn.attention %q, %q, %q score(%s, %b0, %h, %m, %n) {
    %x = tensor.extract %a[%m, %n] : tensor<?x?xf32>
    %y = tensor.extract %b[%m, %n] : tensor<?x?xf32>
    %t = arith.addf %s, %x : f32
    %u = arith.addf %t, %y : f32
    attn.yield %u : f32
  } : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
