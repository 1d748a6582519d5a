func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>,
                     %of_q: tensor<?x?xi32>, %of_k: tensor<?x?xi32>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.document] captures(%of_q, %of_k : tensor<?x?xi32>, tensor<?x?xi32>)
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
