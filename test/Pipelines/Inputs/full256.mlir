func.func @attention(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>) -> (tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>) {
  %o, %l = attn.attention %q, %k, %v 
    : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>
  return %o, %l : tensor<?x?x?x256xbf16>, tensor<?x?x?xf32>
}
