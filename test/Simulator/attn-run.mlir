// The kernel for the GPU, on this machine: right, free of races, and what the cost model says of it.
// RUN: attn-run %s --device=sim --shape B=1,H=2,Hkv=1,M=200,N=300 --check --sim-seeds=3 | FileCheck %s
// RUN: attn-run %s --device=sim --shape B=4,H=16,Hkv=4,M=8192 --predict --flops=causal | FileCheck %s --check-prefix=PREDICT
// RUN: attn-run %s --device=sim --shape B=4,H=16,Hkv=4,M=8192 --predict --block-m=64 --block-n=64 --stages=3 | FileCheck %s --check-prefix=SMALL
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=128 --json --sim-seeds=1 | FileCheck %s --check-prefix=JSON
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=0 --sim-seeds=1 --stay=false | FileCheck %s --check-prefix=NONE
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=1024 --predict | FileCheck %s --check-prefix=SHORT
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=1024,N=1025 --predict | FileCheck %s --check-prefix=LONG
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=130,N=70 --check --sim-seeds=2 --way=long | FileCheck %s --check-prefixes=LONG,RIGHT
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=1100 --predict --way=short | FileCheck %s --check-prefix=SHORT

// CHECK: device    sim, one H200
// CHECK: schedule  producer (one thread) {{.*}} consumer {{.*}} bytes of shared memory
// CHECK: simulated 3 seeds of random times: no race, no deadlock
// CHECK: predicted {{.*}} TFLOP/s of work
// CHECK: in use    tensor {{.*}}, exp {{.*}}; critical:
// CHECK: verdict   right

// PREDICT-NOT: simulated
// PREDICT: predicted {{[3-9][0-9][0-9]}}
// PREDICT-NOT: verdict

// SMALL: consumer 1 x 240 registers
// SMALL: predicted

// JSON: "simulator": {
// JSON-NEXT: "simulated":

// NONE: blocks    0

// Calls with more than 1024 rows or keys take larger tiles of rows, unless an option says otherwise.
// SHORT: schedule  producer {{.*}} consumer 2 x
// LONG: schedule  producer {{.*}} consumer 3 x
// RIGHT: verdict   right
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>)
    -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
     : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}
