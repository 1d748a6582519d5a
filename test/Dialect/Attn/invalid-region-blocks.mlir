// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @empty_block(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{empty block: expect at least a terminator}}
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
    } : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @no_terminator(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-error@+1 {{block with no terminator}}
      %keep = arith.constant true
    } : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @other_terminator(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected only arith and math ops and tensor.extract in the mask region, got 'llvm.unreachable'}}
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-note@+1 {{the op}}
      llvm.unreachable
    } : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @two_blocks(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{region #1 ('mask') failed to verify constraint: region with at most 1 blocks}}
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      cf.br ^exit
    ^exit:
      %keep = arith.constant true
      attn.yield %keep : i1
    } : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
