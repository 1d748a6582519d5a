// RUN: attn-opt %s --attn-to-online=target=cuda | FileCheck %s --implicit-check-not=i128 --implicit-check-not=i64

!t = tensor<?x?x?x128xbf16>

// Constants bound origins and the extents of a whole: no sum of them needs more than an index has, and the end of a loop over keys is found in the
// table of rows.
// CHECK-LABEL: func.func @positions
// CHECK: scf.forall
// CHECK: tensor.extract
// CHECK: attn.online_attention
func.func @positions(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %first: tensor<1xi32>, %total: tensor<2xi32>) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.positions<own, own, table, origin>, #attn.causal<bottom_right>, #attn.window<4096, -1, bottom_right>]
    captures(%rows, %first, %total : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %o : !t
}
