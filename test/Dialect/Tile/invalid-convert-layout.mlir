// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @convert_layout_c1(%a: tensor<64x64xbf16, #tile.acc<units = 1>>) {
  // expected-error@+1 {{expected two layouts of the same shape and element type}}
  %p = tile.convert_layout %a : tensor<64x64xbf16, #tile.acc<units = 1>> -> tensor<64x64xbf16>
  return
}
