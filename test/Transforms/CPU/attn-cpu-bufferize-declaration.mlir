// RUN: attn-opt %s --attn-cpu-bufferize | FileCheck %s

// A declaration has no arguments to annotate, only types.
// CHECK: func.func private @elsewhere(memref<?x8xf32, {{.*}}>) -> memref<?x8xf32
func.func private @elsewhere(tensor<?x8xf32>) -> tensor<?x8xf32>

// CHECK: func.func @here(%{{.*}}: memref<?x8xf32
func.func @here(%a: tensor<?x8xf32>, %out: memref<?x8xf32>) {
  bufferization.materialize_in_destination %a in restrict writable %out : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
  return
}
