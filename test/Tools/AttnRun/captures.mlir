// Variants say which dimensions their tensors have; a table of biases has one of its own.

// RUN: attn-run %s --entry=documents --shape B=2,H=2,M=17,N=33 --input ids_q=0..2 --input ids_k=0..2 --check | FileCheck %s --check-prefix=DOCUMENTS
// RUN: attn-run %s --entry=one_list --shape B=2,H=2,M=17,N=33 --input ids=0..2 --check | FileCheck %s --check-prefix=ONE-LIST
// RUN: not attn-run %s --entry=biases --shape B=1,H=2,M=17 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: attn-run %s --entry=biases --shape B=1,H=2,M=17,bias.1=9 --check | FileCheck %s --check-prefix=BIASES

// DOCUMENTS: verdict   right
func.func @documents(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %ids_q: tensor<?x?xi32>, %ids_k: tensor<?x?xi64>) -> tensor<?x?x?x16xf32> {
  %o = attn.attention %q, %k, %k variants [#attn.document] captures(%ids_q, %ids_k : tensor<?x?xi32>, tensor<?x?xi64>) : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// ONE-LIST: verdict   right
func.func @one_list(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %ids: tensor<?x?xi32>) -> tensor<?x?x?x16xf32> {
  %o = attn.attention %q, %k, %k variants [#attn.document] captures(%ids, %ids : tensor<?x?xi32>, tensor<?x?xi32>) : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// MISSING: expected --shape to give the extents of @biases, got none for bias.1
// BIASES: verdict   right
func.func @biases(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %slopes: tensor<?xf32>, %bias: tensor<?x?xf32>, %lengths: tensor<?xi32>) -> tensor<?x?x?x16xf32> {
  %o = attn.attention %q, %k, %k variants [#attn.alibi<top_left>, #attn.relative_bias<4, top_left>, #attn.key_length] captures(%slopes, %bias, %lengths : tensor<?xf32>, tensor<?x?xf32>, tensor<?xi32>) : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}
