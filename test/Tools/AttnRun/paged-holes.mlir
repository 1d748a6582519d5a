// RUN: python3 %S/Inputs/npy.py %t.table.npy '<i4' 2,6 =4,1,-1,9,2147480000,-2147483648,8,3,0,7,4,-7
// RUN: python3 %S/Inputs/npy.py %t.lengths.npy '<i4' 2 =20,75
// RUN: attn-run %s --input page_table=%t.table.npy --input seqused_k=%t.lengths.npy --shape H=4,Hkv=2,M=3,Np=9 --check --seed 3 | FileCheck %s
// RUN: attn-run %s --input page_table=%t.table.npy --input seqused_k=%t.lengths.npy --shape H=4,Hkv=2,M=3,Np=9 --check --seed 3 --device interpreter | FileCheck %s
// RUN: attn-run %s --input page_table=%t.table.npy --input seqused_k=%t.lengths.npy --shape H=4,Hkv=2,M=3,Np=9 --check --seed 3 --device sim | FileCheck %s
// RUN: not attn-run %s --input page_table=%t.table.npy --input seqused_k=%t.lengths.npy --shape H=4,Hkv=2,M=3,Np=9,C=5 2>&1 | FileCheck %s --check-prefix=ENTRIES
// RUN: not attn-run %s --input page_table=%t.table.npy --input seqused_k=%t.lengths.npy --shape H=4,Hkv=2,M=3,Np=0 2>&1 | FileCheck %s --check-prefix=PAGES

// The text of a spec with pages and lengths, on every device without a GPU. Entries of a table that no kept key needs
// hold anything: -1, numbers of pages that are not there, garbage.
// CHECK: shape     B=2 H=4 Hkv=2 M=3 N=96 D=64 Dv=64
// CHECK: verdict   right
// ENTRIES: error: expected C=5 (--shape), got 6
// PAGES: error: key_cache: expected at least Np=1
func.func @attention(%query: tensor<?x?x?x64xbf16>, %key_cache: tensor<?x16x?x64xbf16>, %value_cache: tensor<?x16x?x64xbf16>, %page_table: tensor<?x?xi32>, %seqused_k: tensor<?xi32>) -> tensor<?x?x?x64xbf16> {
  %key = attn.paged %key_cache[%page_table] : tensor<?x16x?x64xbf16>, tensor<?x?xi32> -> tensor<?x?x?x64xbf16>
  %value = attn.paged %value_cache[%page_table] : tensor<?x16x?x64xbf16>, tensor<?x?xi32> -> tensor<?x?x?x64xbf16>
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %query, %c2 : tensor<?x?x?x64xbf16>
  %output = attn.attention %query, %key, %value
    mask(%b, %h, %m, %n) {
      %length = tensor.extract %seqused_k[%b] : tensor<?xi32>
      %end = arith.index_cast %length : i32 to index
      %is0 = arith.cmpi slt, %n, %end : index
      %after = arith.addi %m, %end : index
      %own = arith.subi %after, %rows : index
      %is1 = arith.cmpi sle, %n, %own : index
      %keep1 = arith.andi %is0, %is1 : i1
      attn.yield %keep1 : i1
    }
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %output : tensor<?x?x?x64xbf16>
}
