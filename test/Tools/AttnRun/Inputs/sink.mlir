// Windows of 20 keys, and a logit of each head that has no value.
func.func @attention(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %sink: tensor<?xf32>)
    -> (tensor<?x?x?x64xf32>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.softcap<5.0>, #attn.window<20, 0, top_left>] sink(%sink : tensor<?xf32>)
      : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x64xf32>, tensor<?x?x?xf32>
}
