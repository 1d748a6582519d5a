// RUN: attn-opt %s --attn-online-softmax --split-input-file --verify-diagnostics

func.func @not_in_a_grid(%q: tensor<1x2x3x16xf16>) -> tensor<1x2x3x16xf16> {
  // expected-error@+2 {{attn-online-softmax: expected room 2 'grid', got room 1 'problem'}}
  // expected-note@+1 {{expected one batch and one head, got tensor<1x2x3x16xf16>}}
  %o = attn.attention %q, %q, %q {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return %o : tensor<1x2x3x16xf16>
}

// -----

func.func @f64(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> (tensor<2x2x128x16xf64>) {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf64>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf64>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    // expected-error@+1 {{f64 is for the reference: convert-attn-to-linalg}}
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf64>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf64> into tensor<2x2x128x16xf64>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf64>
}

// -----

// attn-split-grad makes an op for each.
!t = tensor<?x?x?x16xf16>
!row = tensor<?x?x?xf32>
!x = tensor<?xf32>
func.func @captured_with_query(%q: !t, %l: !row, %x: !x) -> (!t, !x) {
  // expected-error@+1 {{expected one gradient of a captured tensor and no other, got 2}}
  %r:2 = attn.attention_grad_query %q, %q, %q, %q, %l, %l wrt(%x : !x) {attn.schedule = #attn.schedule<block_m = 32, block_n = 32>}
    score(%s, %b, %h, %m, %n) {
      %a = tensor.extract %x[%h] : !x
      %t = arith.addf %s, %a : f32
      attn.yield %t : f32
    }
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %x[%h] : !x
      attn.yield %dt : f32
    } : !t, !t, !t, !t, !row, !row -> d_query(!t) d_wrt(!x)
  return %r#0, %r#1 : !t, !x
}
