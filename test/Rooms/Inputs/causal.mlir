func.func @attention(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %o = attn.attention %q, %k, %k variants [#attn.causal<top_left>]
     : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
