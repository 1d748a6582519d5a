// RUN: attn-opt %s --attn-set-schedule=target=cuda | FileCheck %s
// RUN: not attn-opt %s --attn-set-schedule="target=cuda block-n=80" 2>&1 | FileCheck %s --check-prefix=OWNED

!d64 = tensor<?x?x?x64xbf16>
!d128 = tensor<?x?x?x128xbf16>
!r = tensor<?x?x?xf32>

// Blocks own rows, or keys; what runs leaves room for the sums, two for keys.
// OWNED: error: 'attn.attention_grad_key_value' op expected block_n in multiples of 64 up to 128 for gradients on sm_90a, got 80; the nearest is 128
// CHECK-LABEL: func @gradients
func.func @gradients(%a: !d64, %b: !d128, %lse: !r, %c: f32) -> (!d64, !d64, !d64, !d128, !d128, !d128) {
  // CHECK: attn.row_delta {{.*}}schedule<block_m = 128,
  // CHECK: attn.attention_grad_query {{.*}}schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>
  // CHECK: attn.attention_grad_key_value {{.*}}schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>
  // CHECK: attn.attention_grad_query {{.*}}schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>
  // CHECK: attn.attention_grad_key_value {{.*}}schedule<block_m = 64, block_n = 128, stages = 2, consumers = 2>
  %nl, %delta = attn.row_delta %a, %a, %lse : !d64, !d64, !r -> !r, !r
  %0 = attn.attention_grad_query %a, %a, %a, %a, %nl, %delta : !d64, !d64, !d64, !d64, !r, !r -> d_query(!d64)
  %1:2 = attn.attention_grad_key_value %a, %a, %a, %a, %nl, %delta : !d64, !d64, !d64, !d64, !r, !r -> d_key(!d64) d_value(!d64)
  %2 = attn.attention_grad_query %b, %b, %b, %b, %nl, %delta : !d128, !d128, !d128, !d128, !r, !r -> d_query(!d128)
  %3:2 = attn.attention_grad_key_value %b, %b, %b, %b, %nl, %delta : !d128, !d128, !d128, !d128, !r, !r -> d_key(!d128) d_value(!d128)
  return %0, %1#0, %1#1, %2, %3#0, %3#1 : !d64, !d64, !d64, !d128, !d128, !d128
}

// Where both sums do not fit a thread together, each is the business of a role.
// CHECK-LABEL: func @wide
func.func @wide(%a: tensor<?x?x?x256xbf16>, %nl: !r) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>) {
  // CHECK: %[[K:.*]], %[[V:.*]] = attn.attention_grad_key_value {{.*}}schedule<block_m = 64, block_n = 64, stages = 2, consumers = 2>{{.*}} -> d_key({{.*}} d_value(
  // CHECK: return %[[K]], %[[V]]
  %0:2 = attn.attention_grad_key_value %a, %a, %a, %a, %nl, %nl : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, !r, !r
    -> d_key(tensor<?x?x?x256xbf16>) d_value(tensor<?x?x?x256xbf16>)
  return %0#0, %0#1 : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>
}

// The taker would need the scores to derive them: each sum has a pass.
// CHECK-LABEL: func @wide_derived
func.func @wide_derived(%a: tensor<?x?x?x256xbf16>, %nl: !r) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>) {
  // CHECK: %[[K:.*]] = attn.attention_grad_key_value {{.*}}schedule<block_m = {{[0-9]+}}, block_n = 128
  // CHECK: -> d_key(
  // CHECK: %[[V:.*]] = attn.attention_grad_key_value {{.*}}schedule<block_m = {{[0-9]+}}, block_n = 128
  // CHECK: -> d_value(
  // CHECK: return %[[K]], %[[V]]
  %0:2 = attn.attention_grad_key_value %a, %a, %a, %a, %nl, %nl
    score(%s, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      attn.yield %t : f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      %t = math.tanh %s : f32
      %d = arith.mulf %dt, %t : f32
      attn.yield %d : f32
    } : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, !r, !r
    -> d_key(tensor<?x?x?x256xbf16>) d_value(tensor<?x?x?x256xbf16>)
  return %0#0, %0#1 : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>
}

// A mask leaves wide tiles as large.
// CHECK-LABEL: func @wide_mask
func.func @wide_mask(%a: tensor<?x?x?x256xbf16>, %nl: !r) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>) {
  // CHECK: attn.attention_grad_query {{.*}}schedule<block_m = 128, block_n = 48
  // CHECK: attn.attention_grad_key_value {{.*}}schedule<block_m = 64, block_n = 64, stages = 2, consumers = 2>
  %0 = attn.attention_grad_query %a, %a, %a, %a, %nl, %nl
    mask(%b, %h, %m, %n) {
      %kept = arith.cmpi sle, %n, %m : index
      attn.yield %kept : i1
    } : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, !r, !r -> d_query(tensor<?x?x?x256xbf16>)
  %1:2 = attn.attention_grad_key_value %a, %a, %a, %a, %nl, %nl
    mask(%b, %h, %m, %n) {
      %kept = arith.cmpi sle, %n, %m : index
      attn.yield %kept : i1
    } : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, !r, !r -> d_key(tensor<?x?x?x256xbf16>) d_value(tensor<?x?x?x256xbf16>)
  return %0, %1#0, %1#1 : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>
}

// One role has registers for both sums, but beside a mask for products of 16 rows only: two have more.
// CHECK-LABEL: func @narrow
func.func @narrow(%a: tensor<?x?x?x192xbf16>, %b: tensor<?x?x?x128xbf16>, %nl: !r) -> (tensor<?x?x?x192xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x192xbf16>, tensor<?x?x?x128xbf16>) {
  // CHECK: attn.attention_grad_key_value {{.*}}schedule<block_m = 112, block_n = 64, stages = 2, consumers = 2>
  // CHECK: attn.attention_grad_key_value {{.*}}schedule<block_m = 32, block_n = 128, stages = 2, consumers = 2>
  %0:2 = attn.attention_grad_key_value %a, %a, %b, %b, %nl, %nl
    mask(%i, %h, %m, %n) {
      %kept = arith.cmpi sle, %n, %m : index
      attn.yield %kept : i1
    } : tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, !r, !r -> d_key(tensor<?x?x?x192xbf16>) d_value(tensor<?x?x?x128xbf16>)
  %1:2 = attn.attention_grad_key_value %a, %a, %b, %b, %nl, %nl
    : tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, !r, !r -> d_key(tensor<?x?x?x192xbf16>) d_value(tensor<?x?x?x128xbf16>)
  return %0#0, %0#1, %1#0, %1#1 : tensor<?x?x?x192xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x192xbf16>, tensor<?x?x?x128xbf16>
}
