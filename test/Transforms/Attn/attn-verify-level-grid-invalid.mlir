// RUN: attn-opt %s --attn-verify-level=level=grid --split-input-file --verify-diagnostics

func.func @two_heads(%q: tensor<1x2x3x16xf16>) {
  // expected-error@+1 {{'attn.attention' op does not belong to level 'grid': expected one batch and one head, got 'tensor<1x2x3x16xf16>'}}
  %o = attn.attention %q, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
  return
}

// -----

func.func @no_grid(%q: tensor<1x1x3x16xf16>) {
  // expected-error@+1 {{expected it inside an scf.forall over (B, H, M tiles) mapped to blocks}}
  %o = attn.attention %q, %q, %q : tensor<1x1x3x16xf16>, tensor<1x1x3x16xf16>, tensor<1x1x3x16xf16> -> tensor<1x1x3x16xf16>
  return
}

// -----

func.func @unmapped(%q: tensor<1x1x128x16xf16>) -> tensor<1x1x128x16xf16> {
  %e = tensor.empty() : tensor<1x1x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (1, 1, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<1x1x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x128x16xf16> to tensor<1x1x64x16xf16>
    // expected-error@+1 {{expected it inside an scf.forall over (B, H, M tiles) mapped to blocks}}
    %ot = attn.attention %qt, %q, %q : tensor<1x1x64x16xf16>, tensor<1x1x128x16xf16>, tensor<1x1x128x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<1x1x128x16xf16>
    }
  }
  return %r : tensor<1x1x128x16xf16>
}

// -----

func.func @variants(%q: tensor<1x1x128x16xf16>) -> tensor<1x1x128x16xf16> {
  %e = tensor.empty() : tensor<1x1x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (1, 1, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<1x1x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x128x16xf16> to tensor<1x1x64x16xf16>
    // expected-error@+1 {{does not belong to level 'grid': variants are regions by now}}
    %ot = attn.attention %qt, %q, %q variants [#attn.causal<top_left>] : tensor<1x1x64x16xf16>, tensor<1x1x128x16xf16>, tensor<1x1x128x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<1x1x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<1x1x128x16xf16>
}

// -----

func.func @online(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+1 {{'attn.normalize' op does not belong to level 'grid': the softmax is not online yet}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}
