// Under a mask blocks stay beside what is read for a head or at a distance of row and key; what is read elsewhere takes the registers.
// RUN: attn-opt %s --attn-expand-variants --attn-set-schedule="target=cuda" | FileCheck %s

!t = tensor<?x?x?x128xbf16>

// CHECK-LABEL: func.func @slopes
// CHECK: block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true
func.func @slopes(%q: !t, %slopes: tensor<?xf32>) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.alibi<bottom_right>, #attn.causal<bottom_right>] captures(%slopes : tensor<?xf32>) : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func.func @distances
// CHECK: block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true
func.func @distances(%q: !t, %bias: tensor<?x?xbf16>) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.relative_bias<0, bottom_right>, #attn.causal<bottom_right>] captures(%bias : tensor<?x?xbf16>) : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func.func @doubled
// CHECK: block_m = 128, block_n = 128, stages = 2, consumers = 2>
func.func @doubled(%q: !t, %bias: tensor<?xf32>) -> !t {
  %c2 = arith.constant 2 : index
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      %distance = arith.subi %m, %n : index
      %at = arith.muli %distance, %c2 : index
      %read = tensor.extract %bias[%at] : tensor<?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sge, %m, %n : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func.func @matrix
// CHECK: block_m = 128, block_n = 128, stages = 2, consumers = 2>
func.func @matrix(%q: !t, %bias: tensor<?x?xf32>) -> !t {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      %read = tensor.extract %bias[%m, %n] : tensor<?x?xf32>
      %t = arith.addf %s, %read : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sge, %m, %n : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
