// RUN: attn-opt %s --attn-to-online="target=cuda" --remarks-filter=attn --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: attn-run %s --device=interpreter --count --shape=B=2,H=1,M=256,N=512 --input=lengths=512 --input=start=255 | FileCheck %s --check-prefix=LAST
// RUN: attn-run %s --device=interpreter --count --shape=B=2,H=1,M=256,N=512 --input=lengths=512 --input=start=256 | FileCheck %s --check-prefix=NONE

// Of the last 256 rows of a sequence those before its first do not exist. Their tiles are passed over, as all of a sequence
// are whose rows another call has.
// REMARK: or every n if min(m1 - 1, s1 - 1) - m0 >= 0
// LAST: tiles     16 visited, 16 masked, 0 unmasked
// NONE: tiles     0 visited, 0 masked, 0 unmasked
func.func @rows(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %lengths: tensor<?xi32>, %start: tensor<?xi32>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %l = tensor.extract %lengths[%b] : tensor<?xi32>
      %len = arith.index_cast %l : i32 to index
      %c256 = arith.constant 256 : index
      %e = arith.addi %m, %len : index
      %p = arith.subi %e, %c256 : index
      %causal = arith.cmpi sle, %n, %p : index
      %live = arith.cmpi slt, %n, %len : index
      %s = tensor.extract %start[%b] : tensor<?xi32>
      %st = arith.index_cast %s : i32 to index
      %row = arith.cmpi sge, %m, %st : index
      %k0 = arith.andi %causal, %live : i1
      %k1 = arith.andi %k0, %row : i1
      attn.yield %k1 : i1
    }
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
