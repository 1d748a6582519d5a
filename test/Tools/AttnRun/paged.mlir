// RUN: attn-run %s --shape B=3,H=4,Hkv=2,M=5,C=6,Np=9 --input table=0..8 --input lengths=1..96 --check --seed 3 | FileCheck %s
// RUN: attn-run %s --shape B=3,H=4,Hkv=2,M=5,C=6,Np=9 --input table=0..8 --input lengths=1..96 --device interpreter --check | FileCheck %s

// Pages of 16 keys in an order that a table says: on a CPU, and as the interpreter runs room 3.
// CHECK: verdict right
func.func @paged(%q: tensor<?x?x?x32xf32>, %pool_k: tensor<?x16x?x32xf32>, %pool_v: tensor<?x16x?x32xf32>, %table: tensor<?x?xi32>,
                 %lengths: tensor<?xi32>) -> tensor<?x?x?x32xf32> {
  %k = attn.paged %pool_k[%table] : tensor<?x16x?x32xf32>, tensor<?x?xi32> -> tensor<?x?x?x32xf32>
  %v = attn.paged %pool_v[%table] : tensor<?x16x?x32xf32>, tensor<?x?xi32> -> tensor<?x?x?x32xf32>
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %length = tensor.extract %lengths[%b] : tensor<?xi32>
      %end = arith.index_cast %length : i32 to index
      %keep = arith.cmpi slt, %n, %end : index
      attn.yield %keep : i1
    } : tensor<?x?x?x32xf32>, tensor<?x?x?x32xf32>, tensor<?x?x?x32xf32> -> tensor<?x?x?x32xf32>
  return %o : tensor<?x?x?x32xf32>
}
