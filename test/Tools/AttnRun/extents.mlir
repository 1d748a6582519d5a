// Tensors in several roles, of several attentions, and results of none.
// RUN: not attn-run %s --entry=same --shape B=1,H=2,M=5,N=700 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: not attn-run %s --entry=same --shape B=1,H=2,M=5,N=700 --device=sim 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: not attn-run %s --entry=same --shape B=1,H=2,Hkv=1,M=5 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: attn-run %s --entry=same --shape B=1,H=2,M=37 --check | FileCheck %s --check-prefix=RIGHT
// RUN: attn-run %s --entry=same --shape B=1,H=2,N=37 --check | FileCheck %s --check-prefix=RIGHT
// RUN: attn-run %s --entry=two --shape q.0=1,q.1=2,q.2=5,k.2=9,p.0=3,p.1=1,p.2=70 --check | FileCheck %s --check-prefix=RIGHT
// RUN: attn-run %s --entry=two --shape B=1,H=2,q.2=5,k.2=9,p.2=70 --check | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --entry=two --shape B=1,H=2,M=5,k.2=9,p.2=70 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: attn-run %s --entry=slice --shape B=1,H=2,M=5,k.2=9,v.2=10 --check | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --entry=slice --shape B=1,H=2,M=5,k.2=9,v.2=8 2>&1 | FileCheck %s --check-prefix=SLICE
// RUN: attn-run %s --entry=shifted --shape B=1,H=2,M=5,N=9,t.0=12 --check | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --entry=shifted --shape B=1,H=2,M=5,N=9,t.0=11 2>&1 | FileCheck %s --check-prefix=SHIFTED

// RIGHT: verdict   right
// SAME: attn-run: error: expected M=N=5 (--shape M), got 700 (--shape N)
// HEADS: attn-run: error: expected H=Hkv=2 (--shape H), got 1 (--shape Hkv)
// TWO: attn-run: error: expected M=N=5 (--shape M), got 70 (--shape p.2)
// SLICE: attn-run: error: v: expected at least 9 elements in dimension 2, which is read up to there
// SHIFTED: attn-run: error: t: expected at least 12 elements in dimension 0, which is read up to there
!t = tensor<?x?x?x64xf32>
func.func @same(%a: !t) -> !t {
  %o = attn.attention %a, %a, %a : !t, !t, !t -> !t
  return %o : !t
}
func.func @two(%q: !t, %k: !t, %p: !t) -> (!t, !t) {
  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t
  %r = attn.attention %p, %p, %p : !t, !t, !t -> !t
  return %o, %r : !t, !t
}
func.func @slice(%q: !t, %k: !t, %v: !t) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %B = tensor.dim %k, %c0 : !t
  %H = tensor.dim %k, %c1 : !t
  %N = tensor.dim %k, %c2 : !t
  %w = tensor.extract_slice %v[0, 0, 0, 0] [%B, %H, %N, 64] [1, 1, 1, 1] : !t to !t
  %o = attn.attention %q, %k, %w : !t, !t, !t -> !t
  return %o : !t
}
func.func @shifted(%q: !t, %k: !t, %v: !t, %t: tensor<?xf32>) -> !t {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %far = arith.addi %c4, %n : index
      %i = arith.subi %far, %c1 : index
      %x = tensor.extract %t[%i] : tensor<?xf32>
      %y = arith.addf %s, %x : f32
      attn.yield %y : f32
    }
    : !t, !t, !t -> !t
  return %o : !t
}
