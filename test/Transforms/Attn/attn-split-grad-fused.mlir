// RUN: attn-opt %s --attn-expand-variants --attn-derive-score --attn-split-grad=form=fused | FileCheck %s
// RUN: attn-opt %s --attn-expand-variants --attn-derive-score --attn-split-grad=form=fused --attn-set-schedule=target=cuda | FileCheck %s --check-prefix=CUDA

!t = tensor<?x?x?x64xbf16>
!narrow = tensor<?x?x?x96xbf16>
!uneven = tensor<?x?x?x104xbf16>
!wide = tensor<?x?x?x128xbf16>
!row = tensor<?x?x?xf32>

// Both passes of one gradient have its number, and a block of keys takes as many rows as it has products for.
// CHECK-LABEL: func @all(
// CHECK:         attn.attention_grad_query {{.*}} {attn.fused = 0 : i64}
// CHECK:         attn.attention_grad_key_value {{.*}} {attn.fused = 0 : i64}
// CHECK:         attn.attention_grad_query {{.*}} {attn.fused = 1 : i64}
// CHECK:         attn.attention_grad_key_value {{.*}} {attn.fused = 1 : i64}
// CUDA-LABEL:  func @all(
// CUDA:          attn.attention_grad_key_value {{.*}}attn.fused = {{[0-9]+}} : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128,
// CUDA:          attn.attention_grad_key_value {{.*}}attn.fused = 1 : i64, attn.schedule = #attn.schedule<block_m = 64, block_n = 128,
func.func @all(%a: !t, %b: !wide, %l: !row) -> (!t, !t, !t, !wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  %s:3 = attn.attention_grad %b, %b, %b, %b, %l, %b : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2, %s#0, %s#1, %s#2 : !t, !t, !t, !wide, !wide, !wide
}

// Without all three gradients there are no products to spare.
// CHECK-LABEL: func @some(
// CHECK-NOT:     attn.fused
func.func @some(%a: !t, %l: !row) -> (!t, !t) {
  %r:2 = attn.attention_grad %a, %a, %a, %a, %l, %a : !t, !t, !t, !t, !row, !t -> d_query(!t) d_value(!t)
  return %r#0, %r#1 : !t, !t
}

// Columns of fewer than a product's rows are as many as fragments have rows, or the machine has no block for it.
// CHECK-LABEL: func @narrow(
// CUDA-LABEL: func @narrow(
// CUDA:         attn.attention_grad_key_value {{.*}}attn.fused = {{[0-9]+}} : i64, attn.schedule = #attn.schedule<block_m = 64, block_n = 128,
// CUDA-NOT:     attn.fused
func.func @narrow(%a: !narrow, %b: !uneven, %l: !row) -> (!narrow, !narrow, !narrow, !uneven, !uneven, !uneven) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a : !narrow, !narrow, !narrow, !narrow, !row, !narrow
      -> d_query(!narrow) d_key(!narrow) d_value(!narrow)
  %s:3 = attn.attention_grad %b, %b, %b, %b, %l, %b : !uneven, !uneven, !uneven, !uneven, !row, !uneven
      -> d_query(!uneven) d_key(!uneven) d_value(!uneven)
  return %r#0, %r#1, %r#2, %s#0, %s#1, %s#2 : !narrow, !narrow, !narrow, !uneven, !uneven, !uneven
}

// Masks of one range leave registers for 64 rows; one of either of two for 48, unless a score is beside it.
// CUDA-LABEL: func @one(
// CUDA:         attn.fused = {{[0-9]+}} : i64, attn.schedule = #attn.schedule<block_m = 64, block_n = 128,
func.func @one(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a variants [#attn.window<90, 0, bottom_right>]
      : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// CUDA-LABEL: func @either(
// CUDA:         attn.fused = {{[0-9]+}} : i64, attn.schedule = #attn.schedule<block_m = 48, block_n = 128,
func.func @either(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a variants [#attn.prefix<90, top_left>]
      : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// CUDA-LABEL: func @score_of_either(
// CUDA-NOT:     attn.fused
func.func @score_of_either(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a variants [#attn.softcap<30.0 : f32>, #attn.prefix<90, top_left>]
      : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// CUDA-LABEL: func @captured_either(
// CUDA-NOT:     attn.fused
func.func @captured_either(%a: !wide, %l: !row, %c: tensor<?xi32>) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a variants [#attn.prefix<-1, top_left>] captures(%c : tensor<?xi32>)
      : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// A score whose gradient goes on with one number of it leaves 48 rows under a mask, with several 32; what a GPU has no instructions for none.
// CUDA-LABEL: func @softcap(
// CUDA:         attn.fused = {{[0-9]+}} : i64, attn.schedule = #attn.schedule<block_m = 48, block_n = 128,
func.func @softcap(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a variants [#attn.softcap<30.0 : f32>, #attn.causal<top_left>]
      : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// CUDA-LABEL: func @cubic(
// CUDA:         attn.fused = {{[0-9]+}} : i64, attn.schedule = #attn.schedule<block_m = 32, block_n = 128,
func.func @cubic(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a variants [#attn.causal<top_left>]
    score(%s, %b, %h, %m, %n) {
      %square = arith.mulf %s, %s : f32
      %t = arith.mulf %square, %s : f32
      attn.yield %t : f32
    } : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// CUDA-LABEL: func @long(
// CUDA-NOT:     attn.fused
func.func @long(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a score(%s, %b, %h, %m, %n) {
    %t = math.erf %s : f32
    attn.yield %t : f32
  } : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// A score that reads leaves 48 rows.
// CUDA-LABEL: func @bias(
// CUDA:         attn.fused = {{[0-9]+}} : i64, attn.schedule = #attn.schedule<block_m = 48, block_n = 128,
func.func @bias(%a: !wide, %l: !row, %c: tensor<?x?xbf16>) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a variants [#attn.relative_bias<90, top_left>] captures(%c : tensor<?x?xbf16>)
      : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// CUDA-LABEL: func @rows(
// CUDA-NOT:     attn.fused
func.func @rows(%a: !t, %l: !row) -> (!t, !t, !t) {
  %c70 = arith.constant 70 : index
  %c90 = arith.constant 90 : index
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a mask(%b, %h, %m, %n) {
    %late = arith.cmpi sge, %m, %c90 : index
    %early = arith.cmpi slt, %m, %c70 : index
    %kept = arith.ori %late, %early : i1
    attn.yield %kept : i1
  } : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %r#0, %r#1, %r#2 : !t, !t, !t
}
