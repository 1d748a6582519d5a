// RUN: attn-opt %s --attn-verify-level=level=problem --split-input-file --verify-diagnostics

func.func @softmax(%acc: tensor<8x16xf32>, %max: tensor<8xf32>, %o: tensor<8x16xf16>) -> tensor<8x16xf16> {
  // expected-error@+1 {{'attn.normalize' op does not belong to level 'problem': the softmax is not online yet}}
  %r = attn.normalize %acc, %max, %max outs(%o) : tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf16> -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}

// -----

func.func @loop(%q: tensor<1x2x3x16xf16>, %n: index) -> tensor<1x2x3x16xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op does not belong to level 'problem': attention is on whole tensors}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> (tensor<1x2x3x16xf16>) {
    %o = attn.attention %x, %q, %q : tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16>, tensor<1x2x3x16xf16> -> tensor<1x2x3x16xf16>
    scf.yield %o : tensor<1x2x3x16xf16>
  }
  return %r : tensor<1x2x3x16xf16>
}

// -----

func.func @dialect(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'memref.load' op does not belong to level 'problem': expected func, tensor, arith, math, linalg and attn ops}}
  %y = memref.load %x[%c0] : memref<4xf32>
  return
}
