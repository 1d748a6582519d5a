// RUN: attn-opt %s --tile-simulate='seeds=0 predict' --verify-diagnostics

// expected-error@+1 {{expected at most 16777216 blocks to predict, got 2147483647x65535x1}}
func.func @grid() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = [[2147483647], [65535], []]>} {
  return
}
