// RUN: attn-opt %s --attn-split-grad=form=fused | FileCheck %s
// RUN: attn-opt %s --attn-split-grad=form=fused --attn-set-schedule=target=cuda | FileCheck %s --check-prefix=CUDA

!t = tensor<?x?x?x64xbf16>
!wide = tensor<?x?x?x128xbf16>
!row = tensor<?x?x?xf32>

// Both passes of one gradient have its number, and a block of keys takes as many rows as it has products for.
// CHECK-LABEL: func @all(
// CHECK:         attn.attention_grad_query {{.*}} {attn.fused = 0 : i64}
// CHECK:         attn.attention_grad_key_value {{.*}} {attn.fused = 0 : i64}
// CHECK:         attn.attention_grad_query {{.*}} {attn.fused = 1 : i64}
// CHECK:         attn.attention_grad_key_value {{.*}} {attn.fused = 1 : i64}
// CUDA-LABEL:  func @all(
// CUDA:          attn.attention_grad_key_value {{.*}}attn.fused = 0 : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128,
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

// The machine has no block for it.
// CHECK-LABEL: func @narrow(
// CUDA-LABEL: func @narrow(
// CUDA-NOT:     attn.fused
func.func @narrow(%a: tensor<?x?x?x96xbf16>, %l: !row) -> (tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a : tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>,
      tensor<?x?x?x96xbf16>, !row, tensor<?x?x?x96xbf16> -> d_query(tensor<?x?x?x96xbf16>) d_key(tensor<?x?x?x96xbf16>) d_value(tensor<?x?x?x96xbf16>)
  return %r#0, %r#1, %r#2 : tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>
}

// Masks of one comparison leave registers for it; those of two, or of two conditions on rows, do not.
// CUDA-LABEL: func @one(
// CUDA:         attn.attention_grad_key_value {{.*}}{attn.fused =
func.func @one(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a mask(%b, %h, %m, %n) {
    %kept = arith.cmpi sle, %n, %m : index
    attn.yield %kept : i1
  } : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
  return %r#0, %r#1, %r#2 : !wide, !wide, !wide
}

// CUDA-LABEL: func @two(
// CUDA-NOT:     attn.fused
func.func @two(%a: !wide, %l: !row) -> (!wide, !wide, !wide) {
  %c90 = arith.constant 90 : index
  %r:3 = attn.attention_grad %a, %a, %a, %a, %l, %a mask(%b, %h, %m, %n) {
    %past = arith.cmpi sle, %n, %m : index
    %prefix = arith.cmpi slt, %n, %c90 : index
    %kept = arith.ori %past, %prefix : i1
    attn.yield %kept : i1
  } : !wide, !wide, !wide, !wide, !row, !wide -> d_query(!wide) d_key(!wide) d_value(!wide)
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
