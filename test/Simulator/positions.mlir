// A part of a whole, forward and backward, in GPU kernels that the simulator runs: rows by a sorted table, keys from an origin on, dropout of the whole.
// RUN: attn-run %s --entry=rows --device=sim --shape B=1,H=4,Hkv=2,M=70,N=133 --input rows=sorted --input total=133 --check | FileCheck %s
// RUN: attn-run %s --entry=rows --device=sim --target=sm_80 --shape B=1,H=4,Hkv=2,M=70,N=133 --input rows=sorted --input total=133 --check | FileCheck %s
// RUN: attn-run %s --entry=rows --device=sim --shape B=1,H=2,M=1,N=70 --input rows=69 --input total=70 --check | FileCheck %s
// RUN: attn-run %s --entry=rows --grad --device=sim --shape B=1,H=2,M=70,N=80 --input rows=sorted --input total=80 --check --sim-seeds=1 | FileCheck %s
// RUN: attn-run %s --entry=origins --device=sim --shape B=1,H=2,M=70,N=133 --input row=63 --input key=20 --input total=300 --check | FileCheck %s
// RUN: attn-run %s --entry=origins --grad --device=sim --shape B=1,H=2,M=70,N=80 --input row=30 --input key=20 --input total=130 --check --sim-seeds=1 | FileCheck %s
// RUN: attn-run %s --entry=dropped --device=sim --shape B=1,H=2,M=70,N=80 --input rows=sorted --input key=64 --input total=300 --check | FileCheck %s
// RUN: attn-run %s --entry=keys --grad --device=sim --shape B=1,H=2,M=70,N=80 --input keys=sorted --input total=80 --check --sim-seeds=1 | FileCheck %s
// RUN: attn-run %s --entry=both --grad --device=sim --shape B=1,H=2,M=70,N=80 --input rows=sorted --input first=2 --input total=80 --check --sim-seeds=1 | FileCheck %s
// Rows far before and after all keys keep none and all of them.
// RUN: python3 %S/../Tools/AttnRun/Inputs/npy.py %t.npy '<i4' 70 =-2147483648,-2147483647,0:66,2147483646,2147483647
// RUN: attn-run %s --entry=rows --device=sim --shape B=1,H=2,M=70,N=80 --input rows=%t.npy --input total=80 --check --sim-seeds=1 | FileCheck %s
// RUN: attn-run %s --entry=rows --grad --device=sim --shape B=1,H=2,M=70,N=80 --input rows=%t.npy --input total=80 --check --sim-seeds=1 | FileCheck %s
// CHECK: verdict   right

!t = tensor<?x?x?x64xbf16>

func.func @rows(%query: !t, %key: !t, %value: !t, %rows: tensor<?xi32>, %total: tensor<2xi32>) -> !t {
  %output = attn.attention %query, %key, %value variants [#attn.positions<own, own, table, own>, #attn.causal<bottom_right>]
    captures(%rows, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %output : !t
}

func.func @origins(%q: !t, %k: !t, %v: !t, %row: tensor<1xi32>, %key: tensor<1xi32>, %total: tensor<2xi32>) -> !t {
  %output = attn.attention %q, %k, %v variants [#attn.positions<own, own, origin, origin>, #attn.causal<bottom_right>, #attn.window<40, -1, bottom_right>]
    captures(%row, %key, %total : tensor<1xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %output : !t
}

func.func @dropped(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %key: tensor<1xi32>, %total: tensor<2xi32>, %seed: tensor<1xi64>) -> !t {
  %output = attn.attention %q, %k, %v variants [#attn.positions<own, own, table, origin>, #attn.dropout<0.25>]
    captures(%rows, %key, %total, %seed : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>, tensor<1xi64>) : !t, !t, !t -> !t
  return %output : !t
}

func.func @keys(%query: !t, %key: !t, %value: !t, %keys: tensor<?xi32>, %total: tensor<2xi32>) -> !t {
  %output = attn.attention %query, %key, %value variants [#attn.positions<own, own, own, table>, #attn.causal<bottom_right>, #attn.window<40, -1, bottom_right>]
    captures(%keys, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %output : !t
}

func.func @both(%query: !t, %key: !t, %value: !t, %rows: tensor<?xi32>, %first: tensor<1xi32>, %total: tensor<2xi32>) -> !t {
  %output = attn.attention %query, %key, %value variants [#attn.positions<own, own, table, origin>, #attn.causal<bottom_right>]
    captures(%rows, %first, %total : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t -> !t
  return %output : !t
}
