// RUN: attn-opt %s --attn-to-online=target=cuda | FileCheck %s --implicit-check-not=i128

// Where a part of the keys begins is a position: beside it a captured number needs 64 bits at most.
// CHECK-LABEL: func.func @prefix
// CHECK: attn.count_parts
// CHECK: scf.forall
// CHECK: tensor.extract
// CHECK: attn.online_attention
func.func @prefix(%q: tensor<?x?x?x96xf16>, %k: tensor<?x?x?x96xf16>, %v: tensor<?x?x?x96xf16>, %lengths: tensor<?xi32>) -> tensor<?x?x?x96xf16> {
  %o = attn.attention %q, %k, %v variants [#attn.window<0, 0, bottom_right>, #attn.prefix<-1, top_left>] captures(%lengths : tensor<?xi32>) {attn.pack = 8}
    : tensor<?x?x?x96xf16>, tensor<?x?x?x96xf16>, tensor<?x?x?x96xf16> -> tensor<?x?x?x96xf16>
  return %o : tensor<?x?x?x96xf16>
}

// CHECK-LABEL: func.func @key_length
// CHECK: attn.count_parts
func.func @key_length(%q: tensor<?x?x?x96xf16>, %k: tensor<?x?x?x96xf16>, %v: tensor<?x?x?x96xf16>, %lengths: tensor<?xi64>) -> tensor<?x?x?x96xf16> {
  %o = attn.attention %q, %k, %v {attn.pack = 8} mask(%b, %h, %i, %j) {
    %length = tensor.extract %lengths[%b] : tensor<?xi64>
    %n = arith.index_cast %j : index to i64
    %keep = arith.cmpi slt, %n, %length : i64
    attn.yield %keep : i1
  } : tensor<?x?x?x96xf16>, tensor<?x?x?x96xf16>, tensor<?x?x?x96xf16> -> tensor<?x?x?x96xf16>
  return %o : tensor<?x?x?x96xf16>
}
