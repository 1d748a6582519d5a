// RUN: attn-opt %s --attn-to-online=target=cuda --remarks-filter=attn --remark-format=emitRemark -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not="cannot be decided"

// However rows and keys are told where they stand, blocks of rows skip keys and blocks of keys skip rows.

!t = tensor<?x?x?x128xbf16>
!row = tensor<?x?x?xf32>

// CHECK: keeps n {{.*}}; drops n
// CHECK: keeps m {{.*}}; drops m
// CHECK: keeps n >= {{.*}} and n < {{.*}}; drops n < {{.*}}, or n >=
// CHECK: keeps m >= {{.*}} and m < {{.*}}; drops m >= {{.*}}, or m <
func.func @table_own(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t, !t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, own>, #attn.causal<bottom_right>]
    captures(%rows, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  %e:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, own>, #attn.window<300, 0, bottom_right>]
    captures(%rows, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2, %e#0, %e#1, %e#2 : !t, !t, !t, !t, !t, !t
}

// CHECK: keeps n {{.*}}; drops n
// CHECK: keeps m {{.*}}; drops m
// CHECK: keeps n >= {{.*}} and n < {{.*}}; drops n < {{.*}}, or n >=
// CHECK: keeps m >= {{.*}} and m < {{.*}}; drops m >= {{.*}}, or m <
func.func @own_table(%q: !t, %k: !t, %v: !t, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t, !t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, own, table>, #attn.causal<bottom_right>]
    captures(%keys, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  %e:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, own, table>, #attn.window<300, 0, bottom_right>]
    captures(%keys, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2, %e#0, %e#1, %e#2 : !t, !t, !t, !t, !t, !t
}

// CHECK: keeps n {{.*}}; drops n
// CHECK: keeps m {{.*}}; drops m
// CHECK: keeps n >= {{.*}} and n < {{.*}}; drops n < {{.*}}, or n >=
// CHECK: keeps m >= {{.*}} and m < {{.*}}; drops m >= {{.*}}, or m <
func.func @origin_table(%q: !t, %k: !t, %v: !t, %rows: tensor<1xi32>, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t, !t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, origin, table>, #attn.causal<bottom_right>]
    captures(%rows, %keys, %total : tensor<1xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  %e:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, origin, table>, #attn.window<300, 0, bottom_right>]
    captures(%rows, %keys, %total : tensor<1xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2, %e#0, %e#1, %e#2 : !t, !t, !t, !t, !t, !t
}

// CHECK: keeps n {{.*}}; drops n
// CHECK: keeps m {{.*}}; drops m
// CHECK: keeps n >= {{.*}} and n < {{.*}}; drops n < {{.*}}, or n >=
// CHECK: keeps m >= {{.*}} and m < {{.*}}; drops m >= {{.*}}, or m <
func.func @table_origin(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %keys: tensor<1xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t, !t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, origin>, #attn.causal<bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  %e:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, origin>, #attn.window<300, 0, bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2, %e#0, %e#1, %e#2 : !t, !t, !t, !t, !t, !t
}

// CHECK: keeps n {{.*}}; drops n
// CHECK: keeps m {{.*}}; drops m
// CHECK: keeps n >= {{.*}} and n < {{.*}}; drops n < {{.*}}, or n >=
// CHECK: keeps m >= {{.*}} and m < {{.*}}; drops m >= {{.*}}, or m <
func.func @table_table(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t, !t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, table>, #attn.causal<bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  %e:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, table>, #attn.window<300, 0, bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2, %e#0, %e#1, %e#2 : !t, !t, !t, !t, !t, !t
}
