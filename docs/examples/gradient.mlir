// What a training step asks of causal attention with a soft cap and a learned bias for each key.
func.func @gradient(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %bias: tensor<?x?xf32>,
                    %o: tensor<?x?x?x64xf32>, %lse: tensor<?x?x?xf32>, %do: tensor<?x?x?x64xf32>)
    -> (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?xf32>) {
  %dq, %dk, %dv, %dbias = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.softcap<30.0>, #attn.causal<top_left>]
    wrt(%bias : tensor<?x?xf32>)
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%h, %n] : tensor<?x?xf32>
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?xf32>,
        tensor<?x?x?x64xf32>
    -> d_query(tensor<?x?x?x64xf32>) d_key(tensor<?x?x?x64xf32>) d_value(tensor<?x?x?x64xf32>) d_wrt(tensor<?x?xf32>)
  return %dq, %dk, %dv, %dbias : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?xf32>
}
