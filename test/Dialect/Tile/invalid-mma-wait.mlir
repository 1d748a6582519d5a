// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @mma_wait_c1(%flying: !tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>) {
  // expected-error@+1 {{expected result 'tensor<64x64xf32, #tile.acc<units = 1>>', got 'tensor<64x64xf32>'}}
  %s = "tile.mma_wait"(%flying) {pending = 0} : (!tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>) -> tensor<64x64xf32>
  return
}

// -----

func.func @mma_wait_c1_count(%flying: !tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>) {
  // expected-error@+1 {{expected as many results as operands, got 0}}
  "tile.mma_wait"(%flying) {pending = 0} : (!tile.in_flight<tensor<64x64xf32, #tile.acc<units = 1>>>) -> ()
  return
}
