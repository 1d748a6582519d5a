// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func private @f(index) -> i1

func.func @attention_c12(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected only arith and math ops and tensor.extract in the mask region, got 'func.call'}}
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-note@+1 {{the op}}
      %keep = func.call @f(%m) : (index) -> i1
      attn.yield %keep : i1
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c12_control_flow(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected only arith and math ops and tensor.extract in the score region, got 'scf.if'}}
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      %c = arith.cmpi eq, %m, %n : index
      // expected-note@+1 {{the op}}
      %r = scf.if %c -> f32 {
        scf.yield %s : f32
      } else {
        scf.yield %s : f32
      }
      attn.yield %r : f32
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

// attention is pure: it reads no memory that may change.
func.func @attention_c12_buffer(%q: tensor<2x4x3x16xf32>, %flags: memref<?xi1>) {
  // expected-error@+1 {{expected only arith and math ops and tensor.extract in the mask region, got 'memref.load'}}
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-note@+1 {{the op}}
      %keep = memref.load %flags[%m] : memref<?xi1>
      attn.yield %keep : i1
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c12_nested(%q: tensor<2x4x3x16xf32>) {
  // expected-error@+1 {{expected only arith and math ops and tensor.extract in the mask region, got 'attn.attention'}}
  %o = attn.attention %q, %q, %q
    mask(%b, %h, %m, %n) {
      // expected-note@+1 {{the op}}
      %p = attn.attention %q, %q, %q : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
      %keep = arith.constant true
      attn.yield %keep : i1
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c24(%q: tensor<2x4x3x16xf32>, %bias: tensor<?x?xf32>) {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      %next = arith.addi %m, %h : index
      // expected-error@+1 {{expected a position of the region as index 0, which is the op's own}}
      %r = tensor.extract %bias[%next, %n] {attn.own = array<i64: 0>} : tensor<?x?xf32>
      attn.yield %r : f32
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c24_dimension(%q: tensor<2x4x3x16xf32>, %bias: tensor<?x?xf32>) {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      // expected-error@+1 {{expected dimensions of the tensor in attn.own, got 2}}
      %r = tensor.extract %bias[%m, %n] {attn.own = array<i64: 0, 2>} : tensor<?x?xf32>
      attn.yield %r : f32
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}

// -----

func.func @attention_c24_op(%q: tensor<2x4x3x16xf32>) {
  %o = attn.attention %q, %q, %q
    score(%s, %b, %h, %m, %n) {
      // expected-error@+1 {{expected attn.own of dimensions of a tensor.extract, got array<i64: 0>}}
      %r = arith.addf %s, %s {attn.own = array<i64: 0>} : f32
      attn.yield %r : f32
    }
    : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  return
}
