func.func @attention(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %v: tensor<?x?x?x128xf16>) -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>) {
  %o, %l = attn.attention %q, %k, %v variants [#attn.softcap<30.0 : f32>, #attn.causal<bottom_right>]
    : tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16> -> tensor<?x?x?x128xf16>, tensor<?x?x?xf32>
  return %o, %l : tensor<?x?x?x128xf16>, tensor<?x?x?xf32>
}
