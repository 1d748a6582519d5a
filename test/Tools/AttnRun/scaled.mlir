// RUN: attn-run %s --shape B=2,H=4,Hkv=2,M=70,N=100,q_descale.1=2,k_descale.1=2,v_descale.1=1 --check --seed 3 | FileCheck %s
// RUN: attn-run %s --shape B=2,H=4,Hkv=2,M=70,N=100,q_descale.1=2,k_descale.1=2,v_descale.1=1 --device interpreter --check | FileCheck %s

// Elements of 8 bits with scales of batches and key heads, and of blocks of keys: on a CPU, and as the interpreter runs
// room 3.
// CHECK: verdict right
func.func @scaled(%query: tensor<?x?x?x32xf8E4M3FN>, %key: tensor<?x?x?x32xf8E4M3FN>, %value: tensor<?x?x?x48xf8E4M3FN>,
                  %q_descale: tensor<?x?xf32>, %k_descale: tensor<?x?x?xf32>, %v_descale: tensor<?x?x?xf32>)
    -> (tensor<?x?x?x48xf32>, tensor<?x?x?xf32>) {
  %q = attn.scaled %query, %q_descale : tensor<?x?x?x32xf8E4M3FN>, tensor<?x?xf32> -> tensor<?x?x?x32xf32>
  %k = attn.scaled %key, %k_descale block 16 : tensor<?x?x?x32xf8E4M3FN>, tensor<?x?x?xf32> -> tensor<?x?x?x32xf32>
  %v = attn.scaled %value, %v_descale block 16 : tensor<?x?x?x48xf8E4M3FN>, tensor<?x?x?xf32> -> tensor<?x?x?x48xf32>
  %o, %lse = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>, #attn.softcap<2.0>]
      : tensor<?x?x?x32xf32>, tensor<?x?x?x32xf32>, tensor<?x?x?x48xf32> -> tensor<?x?x?x48xf32>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x48xf32>, tensor<?x?x?xf32>
}
