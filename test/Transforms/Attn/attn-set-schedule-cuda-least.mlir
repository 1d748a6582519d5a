// RUN: attn-opt %s --attn-expand-variants --attn-set-schedule=target=cuda | FileCheck %s

// Regions that leave no room for keys still get the least that there is: 32 with 16 columns of values.
// CHECK-LABEL: func @heavy
// CHECK:       schedule<block_m = 128, block_n = 32
func.func @heavy(%q: tensor<?x?x?x248xf16>, %v: tensor<?x?x?x16xf16>, %slopes: tensor<?xf32>, %bias: tensor<?x?xbf16>) -> tensor<?x?x?x16xf16> {
  %o = attn.attention %q, %q, %v
    variants [#attn.prefix<193, bottom_right>, #attn.window<5, 0, top_left>, #attn.softcap<2.0 : f32>, #attn.alibi<top_left>, #attn.relative_bias<45, top_left>]
    captures(%slopes, %bias : tensor<?xf32>, tensor<?x?xbf16>)
    score(%s, %b, %h, %m, %n) {
      %slope = arith.constant 0.01 : f32
      %d = arith.subi %m, %n : index
      %i = arith.index_cast %d : index to i32
      %x = arith.sitofp %i : i32 to f32
      %y = arith.mulf %x, %slope : f32
      %z = math.tanh %y : f32
      %t = arith.addf %s, %z : f32
      attn.yield %t : f32
    } : tensor<?x?x?x248xf16>, tensor<?x?x?x248xf16>, tensor<?x?x?x16xf16> -> tensor<?x?x?x16xf16>
  return %o : tensor<?x?x?x16xf16>
}
