// Causal attention and its gradients: D = 256, Dv = 256.
func.func @attention(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>, %d_o: tensor<?x?x?x256xbf16>) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
      : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %d_o variants [#attn.causal<bottom_right>]
      : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>, tensor<?x?x?x256xbf16>
      -> d_query(tensor<?x?x?x256xbf16>) d_key(tensor<?x?x?x256xbf16>) d_value(tensor<?x?x?x256xbf16>)
  return %o, %g#0, %g#1, %g#2 : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>
}
