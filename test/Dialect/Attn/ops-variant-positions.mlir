// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @positions(
func.func @positions(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %first: tensor<1xi64>, %total: tensor<2xi32>) -> !t {
  // CHECK: attn.attention {{.*}} variants [#attn.positions<own, own, table, origin>, #attn.causal<bottom_right>] captures({{.*}} : tensor<?xi32>, tensor<1xi64>, tensor<2xi32>) :
  %o = attn.attention %q, %k, %v variants [#attn.positions<own, own, table, origin>, #attn.causal<bottom_right>]
    captures(%rows, %first, %total : tensor<?xi32>, tensor<1xi64>, tensor<2xi32>) : !t, !t, !t -> !t
  return %o : !t
}
