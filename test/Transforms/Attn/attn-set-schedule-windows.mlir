// A mask that bounds keys from both sides has few tiles of keys at any length: one way, of the sizes of short sequences.
// RUN: attn-opt %s --attn-expand-variants --attn-make-ways --attn-set-schedule="target=cuda" | FileCheck %s

!t = tensor<?x?x?x64xbf16>

// CHECK-NOT: func.func @{{.*}}_short
// CHECK-LABEL: func.func @sliding
// CHECK: block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true
func.func @sliding(%q: !t) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.causal<bottom_right>, #attn.window<127, -1, bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-NOT: func.func @{{.*}}_short
// CHECK-LABEL: func.func @around
// CHECK: block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true
func.func @around(%q: !t) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.window<64, 64, bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func.func @causal_short
// CHECK-LABEL: func.func @causal
// CHECK: block_m = 192, block_n = 128
func.func @causal(%q: !t) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.causal<bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}
