// RUN: attn-opt %s --attn-tile-to-grid --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x16xf16>

// One attention reads another: two grids, one after the other.
// CHECK-LABEL: func @chain(
func.func @chain(%q: !t, %k: !t) -> !t {
  // CHECK: %[[FIRST:.*]] = scf.forall
  // CHECK: attn.attention
  // CHECK: scf.forall
  // CHECK: tensor.extract_slice %[[FIRST]]
  // CHECK: attn.attention
  %o = attn.attention %q, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : !t, !t, !t -> !t
  %p = attn.attention %o, %k, %k {attn.schedule = #attn.schedule<block_m = 64, block_n = 32>} : !t, !t, !t -> !t
  return %p : !t
}
