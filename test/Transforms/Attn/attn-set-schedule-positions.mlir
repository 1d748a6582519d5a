// Where rows stand by a sorted table, and rows and keys from origins on, blocks stay as they do under a diagonal; keys of a table take registers.
// RUN: attn-opt %s --attn-expand-variants --attn-widen-indices --attn-set-schedule="target=cuda" | FileCheck %s

!t = tensor<?x?x?x128xbf16>

// CHECK-LABEL: func.func @diagonal
// CHECK: #attn.schedule<[[EDGE:block_m = 128, block_n = 128, .*stay = true, slack = 0.*]]>}
func.func @diagonal(%q: !t) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.causal<bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func.func @rows
// CHECK: #attn.schedule<[[EDGE]]>}
func.func @rows(%q: !t, %rows: tensor<?xi32>, %total: tensor<2xi32>) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, table, own>, #attn.causal<bottom_right>]
    captures(%rows, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %o : !t
}

// CHECK-LABEL: func.func @origins
// CHECK: #attn.schedule<[[EDGE]]>}
func.func @origins(%q: !t, %row: tensor<1xi32>, %key: tensor<1xi32>, %total: tensor<2xi32>) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, origin, origin>, #attn.causal<bottom_right>]
    captures(%row, %key, %total : tensor<1xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %o : !t
}

// At D = 64 tables take registers that three consumers do not have.
// CHECK-LABEL: func.func @narrow
// CHECK: #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true, slack = 0, hold = true>}
func.func @narrow(%q: tensor<?x?x?x64xbf16>, %rows: tensor<?xi32>, %total: tensor<2xi32>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, table, own>, #attn.causal<bottom_right>]
    captures(%rows, %total : tensor<?xi32>, tensor<2xi32>)
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// CHECK-LABEL: func.func @keys
// CHECK-NOT: stay = true
func.func @keys(%q: !t, %keys: tensor<?xi32>, %total: tensor<2xi32>) -> !t {
  %o = attn.attention %q, %q, %q variants [#attn.positions<own, own, own, table>, #attn.causal<bottom_right>]
    captures(%keys, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %o : !t
}
