// RUN: attn-run %s --shape B=2,H=4,Hkv=2,M=7,N=7,T=40 --input offsets=0..20 --check | FileCheck %s
// RUN: attn-run %s --shape B=2,H=4,Hkv=2,M=7,N=7,T=40 --input offsets=0..20 --device interpreter --check | FileCheck %s

// Sequences of elements that have a scale for each batch; other rows are those of zeros.
// CHECK: verdict right
func.func @sequences(%rows: tensor<?x?x32xf8E5M2>, %keys: tensor<?x?x32xf8E5M2>, %offsets: tensor<?xi32>,
                     %scale: tensor<?x1xf32>, %most: tensor<?xi8>) -> tensor<?x?x32xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %most, %c0 : tensor<?xi8>
  %q8 = attn.ragged %rows[%offsets] up_to %m : tensor<?x?x32xf8E5M2>, tensor<?xi32> -> tensor<?x?x?x32xf8E5M2>
  %k8 = attn.ragged %keys[%offsets] up_to %m : tensor<?x?x32xf8E5M2>, tensor<?xi32> -> tensor<?x?x?x32xf8E5M2>
  %q = attn.scaled %q8, %scale : tensor<?x?x?x32xf8E5M2>, tensor<?x1xf32> -> tensor<?x?x?x32xf16>
  %k = attn.scaled %k8, %scale : tensor<?x?x?x32xf8E5M2>, tensor<?x1xf32> -> tensor<?x?x?x32xf16>
  %o = attn.attention %q, %k, %k : tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16> -> tensor<?x?x?x32xf16>
  %t = tensor.dim %rows, %c0 : tensor<?x?x32xf8E5M2>
  %h = tensor.dim %rows, %c1 : tensor<?x?x32xf8E5M2>
  %empty = tensor.empty(%t, %h) : tensor<?x?x32xf16>
  %zero = arith.constant 0.0 : f16
  %zeros = linalg.fill ins(%zero : f16) outs(%empty : tensor<?x?x32xf16>) -> tensor<?x?x32xf16>
  %placed = attn.place %o[%offsets] into %zeros : tensor<?x?x?x32xf16>, tensor<?xi32> -> tensor<?x?x32xf16>
  return %placed : tensor<?x?x32xf16>
}
