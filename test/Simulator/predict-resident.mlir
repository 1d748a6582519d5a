// Two blocks on a multiprocessor fill each other's waits: in use is what they share, and the time is less. Where each has a multiprocessor for
// itself it is the same.
// RUN: attn-run %s --device=sim --shape B=64,H=8,Hkv=1,M=64,N=1024 --predict | FileCheck %s --check-prefix=TWO
// RUN: sed 's/, resident = 2//' %s | attn-run - --device=sim --shape B=64,H=8,Hkv=1,M=64,N=1024 --predict | FileCheck %s --check-prefix=ONE
// RUN: attn-run %s --device=sim --shape B=16,H=8,Hkv=1,M=64,N=1024 --predict | FileCheck %s --check-prefix=ALONE
// RUN: sed 's/, resident = 2//' %s | attn-run - --device=sim --shape B=16,H=8,Hkv=1,M=64,N=1024 --predict | FileCheck %s --check-prefix=ALONE

// TWO:   time      0.04
// TWO:   memory 8{{[0-9]}}%, hbm 2{{[0-9]}}%; critical: memory
// ONE:   time      0.05
// ONE:   memory 7{{[0-9]}}%, hbm 2{{[0-9]}}%; critical: memory
// ALONE: time      0.016 ms
func.func @attention(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 80, stages = 2, resident = 2>}
     : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
