// RUN: attn-run %s --shape B=3,H=4,Hkv=2,M=40,N=60,rows_q.0=30,rows_k.0=90 --input at_q=sorted --input at_k=0..90 --check --seed 3 | FileCheck %s
// RUN: attn-run %s --shape B=3,H=4,Hkv=2,M=40,N=60,rows_q.0=30,rows_k.0=90 --input at_q=sorted --input at_k=0..90 --device interpreter --check | FileCheck %s

// Sequences of any lengths, with offsets of keys that fall: on a CPU, and as the interpreter runs room 3. Other rows are those of
// zeros.
// CHECK: verdict right
func.func @ragged(%rows_q: tensor<?x?x32xf32>, %rows_k: tensor<?x?x32xf32>, %rows_v: tensor<?x?x32xf32>, %at_q: tensor<?xi32>,
                  %at_k: tensor<?xi32>, %most_q: tensor<?xi8>, %most_k: tensor<?xi8>) -> tensor<?x?x32xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %most_q, %c0 : tensor<?xi8>
  %n = tensor.dim %most_k, %c0 : tensor<?xi8>
  %q = attn.ragged %rows_q[%at_q] up_to %m : tensor<?x?x32xf32>, tensor<?xi32> -> tensor<?x?x?x32xf32>
  %k = attn.ragged %rows_k[%at_k] up_to %n : tensor<?x?x32xf32>, tensor<?xi32> -> tensor<?x?x?x32xf32>
  %v = attn.ragged %rows_v[%at_k] up_to %n : tensor<?x?x32xf32>, tensor<?xi32> -> tensor<?x?x?x32xf32>
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m0, %n0) {
      %keep = arith.cmpi sle, %n0, %m0 : index
      attn.yield %keep : i1
    } : tensor<?x?x?x32xf32>, tensor<?x?x?x32xf32>, tensor<?x?x?x32xf32> -> tensor<?x?x?x32xf32>
  %zeros = arith.constant 0.0 : f32
  %t = tensor.dim %rows_q, %c0 : tensor<?x?x32xf32>
  %c1 = arith.constant 1 : index
  %h = tensor.dim %rows_q, %c1 : tensor<?x?x32xf32>
  %empty = tensor.empty(%t, %h) : tensor<?x?x32xf32>
  %filled = linalg.fill ins(%zeros : f32) outs(%empty : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  %p = attn.place %o[%at_q] into %filled : tensor<?x?x?x32xf32>, tensor<?xi32> -> tensor<?x?x32xf32>
  return %p : tensor<?x?x32xf32>
}
