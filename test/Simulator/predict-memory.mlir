// HBM moves what blocks read first, however they are placed: as fast as it was measured, to a few percent (results/gpu-decode.json: 0.120, 0.472,
// 0.124 ms). Heads that share keys, and rows after the first ones, find them in L2.
// RUN: attn-run %s --device=sim --entry=decode --shape B=16,H=32,Hkv=8,M=1,N=8192 --predict | FileCheck %s --check-prefix=ONE
// RUN: attn-run %s --device=sim --entry=decode --shape B=64,H=32,Hkv=8,M=1,N=8192 --predict | FileCheck %s --check-prefix=FOUR
// RUN: attn-run %s --device=sim --entry=decode --shape B=1,H=32,Hkv=8,M=1,N=131072 --predict | FileCheck %s --check-prefix=PARTS
// RUN: attn-run %s --device=sim --entry=decode --shape B=4,H=16,M=4096 --predict | FileCheck %s --check-prefix=ROWS

// Of a cache with room for 131072 keys the 8192 that are live are read, by as many blocks as those of a full cache.
// RUN: attn-run %s --device=sim --entry=live --shape B=1,H=32,Hkv=8,M=1,N=8192 --input=lengths=8192..8192 --predict | FileCheck %s --check-prefix=LIVE
// RUN: attn-run %s --device=sim --entry=live --shape B=1,H=32,Hkv=8,M=1,N=131072 --input=lengths=8192..8192 --predict | FileCheck %s --check-prefix=LIVE
// RUN: attn-run %s --device=sim --entry=live --shape B=1,H=32,Hkv=8,M=1,N=131072 --input=lengths=131072..131072 --predict | FileCheck %s --check-prefix=PARTS

// ONE:   time      0.12
// ONE:   hbm 9{{[0-9]}}%; critical: hbm
// FOUR:  time      0.47
// PARTS: time      0.12
// PARTS: critical: hbm
// ROWS:  hbm {{[0-9]}}%; critical: tensor
// LIVE:  time      0.016 ms
func.func @decode(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v {attn.pack = 4} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

func.func @live(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %lengths: tensor<?xi32>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.key_length] captures(%lengths : tensor<?xi32>) {attn.pack = 4}
    : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
