func.func private @unrelated(tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32>

func.func @whole(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %ids: tensor<?x?xi32>,
                 %slopes: tensor<?xf32>, %bias: tensor<?x?xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.softcap<30.0>, #attn.alibi<top_left>, #attn.causal<top_left>]
    captures(%ids, %ids, %slopes : tensor<?x?xi32>, tensor<?x?xi32>, tensor<?xf32>)
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%h, %n] : tensor<?x?xf32>
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    } mask(%b, %h, %m, %n) {
      %keep = arith.cmpi ne, %m, %n : index
      attn.yield %keep : i1
    } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  %p = attn.attention %o, %k, %v variants [#attn.causal<top_left>]
    : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %p : tensor<?x?x?x64xf32>
}

func.func @beside(%q: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
