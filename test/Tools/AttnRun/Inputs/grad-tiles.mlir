!x = tensor<1x2x40x64xf32>
func.func @f(%q: !x, %k: !x, %v: !x) -> !x {
  %o = attn.attention %q, %k, %v : !x, !x, !x -> !x
  return %o : !x
}
