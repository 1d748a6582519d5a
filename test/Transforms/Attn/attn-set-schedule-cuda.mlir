// RUN: attn-opt %s --attn-set-schedule=target=cuda | FileCheck %s

!d64 = tensor<?x?x?x64xbf16>
!d128 = tensor<?x?x?x128xbf16>
!d192 = tensor<?x?x?x192xbf16>
!d256 = tensor<?x?x?x256xbf16>

// Rooms below read the machine and the depth of rings in the IR.
// CHECK: module attributes {plan.target = #plan.target<"sm_90a">}
// CHECK-LABEL: func @plain
func.func @plain(%a: !d64, %b: !d128, %c: !d192, %d: !d256) -> (!d64, !d128, !d192, !d256) {
  // CHECK: schedule<block_m = 192, block_n = 128, stages = 2, consumers = 3>
  %0 = attn.attention %a, %a, %a : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 192, block_n = 80, stages = 2, consumers = 3, slack = 0>
  %1 = attn.attention %b, %b, %b : !d128, !d128, !d128 -> !d128
  // CHECK: schedule<block_m = 128, block_n = 96
  %2 = attn.attention %c, %c, %c : !d192, !d192, !d192 -> !d192
  // CHECK: schedule<block_m = 128, block_n = 80
  %3 = attn.attention %d, %d, %d : !d256, !d256, !d256 -> !d256
  return %0, %1, %2, %3 : !d64, !d128, !d192, !d256
}

// Narrow tiles follow a diagonal more closely.
// CHECK-LABEL: func @masked
func.func @masked(%d: !d256) -> !d256 {
  // CHECK: schedule<block_m = 128, block_n = 64
  %0 = attn.attention %d, %d, %d mask(%b, %h, %m, %n) {
    %keep = arith.cmpi sle, %n, %m : index
    attn.yield %keep : i1
  } : !d256, !d256, !d256 -> !d256
  return %0 : !d256
}

// What is read at every element takes registers; what is read once for each head does not.
// CHECK-LABEL: func @captures
func.func @captures(%a: !d64, %d: !d256, %slopes: tensor<?xf32>, %bias: tensor<?x?xf32>) -> (!d64, !d64, !d64, !d256) {
  // CHECK: schedule<block_m = 192, block_n = 128
  %0 = attn.attention %a, %a, %a score(%s, %b, %h, %m, %n) {
    %x = tensor.extract %slopes[%h] : tensor<?xf32>
    %y = arith.mulf %s, %x : f32
    attn.yield %y : f32
  } : !d64, !d64, !d64 -> !d64
  // With a mask beside it there is no room for 128 keys.
  // CHECK: schedule<block_m = 192, block_n = 112
  %3 = attn.attention %a, %a, %a score(%s, %b, %h, %m, %n) {
    %x = tensor.extract %slopes[%h] : tensor<?xf32>
    %y = arith.mulf %s, %x : f32
    attn.yield %y : f32
  } mask(%b, %h, %m, %n) {
    %keep = arith.cmpi sle, %n, %m : index
    attn.yield %keep : i1
  } : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 128, block_n = 128
  %1 = attn.attention %a, %a, %a score(%s, %b, %h, %m, %n) {
    %x = tensor.extract %bias[%m, %n] : tensor<?x?xf32>
    %y = arith.addf %s, %x : f32
    attn.yield %y : f32
  } : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 128, block_n = 48
  %2 = attn.attention %d, %d, %d mask(%b, %h, %m, %n) {
    %x = tensor.extract %bias[%m, %n] : tensor<?x?xf32>
    %zero = arith.constant 0.0 : f32
    %y = arith.cmpf ogt, %x, %zero : f32
    attn.yield %y : i1
  } : !d256, !d256, !d256 -> !d256
  return %0, %3, %1, %2 : !d64, !d64, !d64, !d256
}

// A function without an instruction is dozens of them.
// CHECK-LABEL: func @functions
func.func @functions(%a: !d64, %b: !d128) -> (!d64, !d64, !d128, !d64, !d64) {
  // CHECK: schedule<block_m = 192, block_n = 128
  %0 = attn.attention %a, %a, %a score(%s, %b0, %h, %m, %n) {
    %x = math.tanh %s : f32
    attn.yield %x : f32
  } : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 192, block_n = 96
  %1 = attn.attention %a, %a, %a score(%s, %b0, %h, %m, %n) {
    %x = math.erf %s : f32
    attn.yield %x : f32
  } : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 128, block_n = 112
  %2 = attn.attention %b, %b, %b score(%s, %b0, %h, %m, %n) {
    %x = math.erf %s : f32
    attn.yield %x : f32
  } : !d128, !d128, !d128 -> !d128
  // Rounding has an instruction; counting zeros from the right is written out by LLVM.
  // CHECK: schedule<block_m = 192, block_n = 128
  %3 = attn.attention %a, %a, %a score(%s, %b0, %h, %m, %n) {
    %x = math.round %s : f32
    attn.yield %x : f32
  } : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 192, block_n = 96
  %4 = attn.attention %a, %a, %a score(%s, %b0, %h, %m, %n) {
    %i = arith.index_cast %n : index to i32
    %zeros = math.cttz %i : i32
    %x = arith.sitofp %zeros : i32 to f32
    attn.yield %x : f32
  } : !d64, !d64, !d64 -> !d64
  return %0, %1, %2, %3, %4 : !d64, !d64, !d128, !d64, !d64
}

// Rows of 32 bytes make whole stages of 1024 in multiples of 32 keys: 96 where others have 112.
// CHECK-LABEL: func @short_rows
func.func @short_rows(%a: tensor<?x?x?x16xbf16>, %slopes: tensor<?xf32>) -> tensor<?x?x?x16xbf16> {
  // CHECK: schedule<block_m = 192, block_n = 96
  %0 = attn.attention %a, %a, %a score(%s, %b, %h, %m, %n) {
    %x = tensor.extract %slopes[%h] : tensor<?xf32>
    %y = arith.mulf %s, %x : f32
    attn.yield %y : f32
  } mask(%b, %h, %m, %n) {
    %keep = arith.cmpi sle, %n, %m : index
    attn.yield %keep : i1
  } : tensor<?x?x?x16xbf16>, tensor<?x?x?x16xbf16>, tensor<?x?x?x16xbf16> -> tensor<?x?x?x16xbf16>
  return %0 : tensor<?x?x?x16xbf16>
}

// Much work for every key and every score takes registers, too.
// CHECK-LABEL: func @busy
func.func @busy(%a: !d64, %d: !d256) -> (!d64, !d256) {
  %c33 = arith.constant 33 : index
  %c116 = arith.constant 116 : index
  // Work for a row is shared by its scores.
  // CHECK: schedule<block_m = 192, block_n = 128
  %0 = attn.attention %a, %a, %a mask(%b, %h, %m, %n) {
    %x = arith.divui %m, %c33 : index
    %y = arith.muli %x, %c116 : index
    %z = arith.divui %y, %c33 : index
    %keep = arith.cmpi sle, %n, %z : index
    attn.yield %keep : i1
  } : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 192, block_n = 112
  %1 = attn.attention %a, %a, %a mask(%b, %h, %m, %n) {
    %x = arith.divui %n, %c33 : index
    %y = arith.muli %x, %c116 : index
    %z = arith.divui %y, %c33 : index
    %u = arith.addi %z, %c33 : index
    %keep = arith.cmpi sle, %u, %m : index
    attn.yield %keep : i1
  } : !d64, !d64, !d64 -> !d64
  // CHECK: schedule<block_m = 128, block_n = 48
  %2 = attn.attention %d, %d, %d mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c33 : index
    %j = arith.divui %n, %c33 : index
    %same = arith.cmpi eq, %i, %j : index
    %k = arith.divui %n, %c116 : index
    %keep0 = arith.cmpi ne, %i, %k : index
    %keep = arith.andi %same, %keep0 : i1
    attn.yield %keep : i1
  } : !d256, !d256, !d256 -> !d256
  return %1, %2 : !d64, !d256
}
