// RUN: attn-opt %s --canonicalize | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// On tensors the ops are pure: unused ones go.
// CHECK-LABEL: func @dead(
// CHECK-NEXT: return
func.func @dead(%q: !t, %ids: tensor<?xi32>, %p: tensor<4x16xf32>, %l: tensor<4xf32>, %out: tensor<16xf32>) {
  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t
  %a = attn.assume nondecreasing %ids : tensor<?xi32>
  %r = attn.merge %p, %l outs(%out) : tensor<4x16xf32>, tensor<4xf32>, tensor<16xf32> -> tensor<16xf32>
  return
}

// On buffers they write.
// CHECK-LABEL: func @written(
func.func @written(%p: memref<4x16xf32>, %l: memref<4xf32>, %out: memref<16xf32>) {
  // CHECK: attn.merge
  attn.merge %p, %l outs(%out) : memref<4x16xf32>, memref<4xf32>, memref<16xf32>
  return
}
