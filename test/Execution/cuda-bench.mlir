// Timing on the GPU's clock: launches only, a number of them.
// REQUIRES: cuda, sm_90
// RUN: attn-run %s --device=cuda --shape B=1,H=8,M=1024 --bench --bench-ms=50 --json | FileCheck %s

// CHECK-DAG: "device": "cuda NVIDIA{{.*}} 0 bytes of local memory
// CHECK-DAG: "gflops": {{[0-9.]+}}
// CHECK-DAG: "host": "{{[0-9.]+}} us for a launch, of which {{[0-9.]+}} us the driver's"
func.func @attention(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
