// Gradients of parts of a whole visit the tiles that keep something, and compare positions in those that a bound crosses alone, by rows and by keys,
// however both are told where they stand: of 512 positions a table has the first 128 and the last 128, as a rank of two has by zigzag.

// RUN: python3 %S/Inputs/npy.py %t.npy '<i4' 256 =0:128,384:512
// RUN: attn-run %s --entry=table_own_causal --device=interpreter --count --shape B=1,H=1,M=256,N=512 --input rows=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,TABLE-OWN-CAUSAL
// RUN: attn-run %s --entry=table_own_window --device=interpreter --count --shape B=1,H=1,M=256,N=512 --input rows=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,TABLE-OWN-WINDOW
// RUN: attn-run %s --entry=own_table_causal --device=interpreter --count --shape B=1,H=1,M=512,N=256 --input keys=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,OWN-TABLE-CAUSAL
// RUN: attn-run %s --entry=own_table_window --device=interpreter --count --shape B=1,H=1,M=512,N=256 --input keys=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,OWN-TABLE-WINDOW
// RUN: attn-run %s --entry=table_origin_causal --device=interpreter --count --shape B=1,H=1,M=256,N=384 --input rows=%t.npy --input keys=128 --input total=512 | FileCheck %s --check-prefixes=CHECK,TABLE-ORIGIN-CAUSAL
// RUN: attn-run %s --entry=table_origin_window --device=interpreter --count --shape B=1,H=1,M=256,N=384 --input rows=%t.npy --input keys=128 --input total=512 | FileCheck %s --check-prefixes=CHECK,TABLE-ORIGIN-WINDOW
// RUN: attn-run %s --entry=origin_table_causal --device=interpreter --count --shape B=1,H=1,M=256,N=256 --input rows=128 --input keys=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,ORIGIN-TABLE-CAUSAL
// RUN: attn-run %s --entry=origin_table_window --device=interpreter --count --shape B=1,H=1,M=256,N=256 --input rows=128 --input keys=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,ORIGIN-TABLE-WINDOW
// RUN: attn-run %s --entry=table_table_causal --device=interpreter --count --shape B=1,H=1,M=256,N=256 --input rows=%t.npy --input keys=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,TABLE-TABLE-CAUSAL
// RUN: attn-run %s --entry=table_table_window --device=interpreter --count --shape B=1,H=1,M=256,N=256 --input rows=%t.npy --input keys=%t.npy --input total=512 | FileCheck %s --check-prefixes=CHECK,TABLE-TABLE-WINDOW

!t = tensor<?x?x?x64xf32>
!row = tensor<?x?x?xf32>

// TABLE-OWN-CAUSAL: tiles 36 visited, 8 masked, 28 unmasked
func.func @table_own_causal(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, own>, #attn.causal<bottom_right>]
    captures(%rows, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// TABLE-OWN-WINDOW: tiles 18 visited, 18 masked, 0 unmasked
func.func @table_own_window(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, own>, #attn.window<100, 0, bottom_right>]
    captures(%rows, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// OWN-TABLE-CAUSAL: tiles 36 visited, 8 masked, 28 unmasked
func.func @own_table_causal(%q: !t, %k: !t, %v: !t, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, own, table>, #attn.causal<bottom_right>]
    captures(%keys, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// OWN-TABLE-WINDOW: tiles 18 visited, 18 masked, 0 unmasked
func.func @own_table_window(%q: !t, %k: !t, %v: !t, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, own, table>, #attn.window<100, 0, bottom_right>]
    captures(%keys, %total : tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// TABLE-ORIGIN-CAUSAL: tiles 22 visited, 4 masked, 18 unmasked
func.func @table_origin_causal(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %keys: tensor<1xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, origin>, #attn.causal<bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// TABLE-ORIGIN-WINDOW: tiles 12 visited, 12 masked, 0 unmasked
func.func @table_origin_window(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %keys: tensor<1xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, origin>, #attn.window<100, 0, bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<1xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// ORIGIN-TABLE-CAUSAL: tiles 16 visited, 0 masked, 16 unmasked
func.func @origin_table_causal(%q: !t, %k: !t, %v: !t, %rows: tensor<1xi32>, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, origin, table>, #attn.causal<bottom_right>]
    captures(%rows, %keys, %total : tensor<1xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// ORIGIN-TABLE-WINDOW: tiles 6 visited, 6 masked, 0 unmasked
func.func @origin_table_window(%q: !t, %k: !t, %v: !t, %rows: tensor<1xi32>, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, origin, table>, #attn.window<100, 0, bottom_right>]
    captures(%rows, %keys, %total : tensor<1xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// TABLE-TABLE-CAUSAL: tiles 20 visited, 8 masked, 12 unmasked
func.func @table_table_causal(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, table>, #attn.causal<bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// TABLE-TABLE-WINDOW: tiles 12 visited, 12 masked, 0 unmasked
func.func @table_table_window(%q: !t, %k: !t, %v: !t, %rows: tensor<?xi32>, %keys: tensor<?xi32>, %total: tensor<2xi32>, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %d:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.positions<own, own, table, table>, #attn.window<100, 0, bottom_right>]
    captures(%rows, %keys, %total : tensor<?xi32>, tensor<?xi32>, tensor<2xi32>) : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// CHECK: waste 0 tiles keep nothing, 0 masked tiles keep everything
// CHECK: verdict right
