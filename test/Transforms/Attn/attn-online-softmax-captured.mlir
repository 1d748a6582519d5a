// RUN: attn-opt %s --attn-to-online -split-input-file | FileCheck %s

!q = tensor<?x?x?x16xf32>
!l = tensor<?x?x?xf32>

// Each read has the head as an index: a block owns what is read at one head, and loops over batches and rows.
// CHECK-LABEL: func @head(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?xf32>
func.func @head(%q: !q, %o: !q, %l: !l, %x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: attn.grad_delta_end
  // CHECK: %[[ZEROS:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?xf32>)
  // CHECK: scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) in (1, %{{.*}}, 1) shared_outs(%[[OUT:.*]] = %[[ZEROS]])
  // CHECK:   tensor.extract_slice %[[OUT]][%[[H]]] [1] [1] : tensor<?xf32> to tensor<1xf32>
  // CHECK:   scf.for %[[B:.*]] = %c0 to
  // CHECK:     scf.for %[[M:.*]] = %c0 to {{.*}} step %c64
  // CHECK:       scf.for {{.*}} step %c64
  // CHECK:         attn.grad_captured_step {{.*}} at(%[[B]], %[[H]], %[[M]], %{{.*}})
  // CHECK:           %[[INSIDE:.*]] = arith.subi %{{.*}}, %[[H]] : index
  // CHECK:           attn.contribute %{{.*}} to %[[X]][%[[INSIDE]]]
  // CHECK: tensor.parallel_insert_slice %{{.*}} into %[[OUT]][%[[H]]] [1] [1]
  %g = attn.attention_grad %q, %q, %q, %o, %l, %o wrt(%x : tensor<?xf32>)
    score(%s, %b, %h, %m, %n) {
      %y = tensor.extract %x[%h] : tensor<?xf32>
      %t = arith.addf %s, %y : f32
      attn.yield %t : f32
    } : !q, !q, !q, !q, !l, !q -> d_wrt(tensor<?xf32>)
  return %g : tensor<?xf32>
}

// -----

!q = tensor<?x?x?x16xf32>
!l = tensor<?x?x?xf32>

// One at the row, another one at the key: neither coordinate alone says where, and all is in one block.
// CHECK-LABEL: func @both(
func.func @both(%q: !q, %o: !q, %l: !l, %x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) in (1, 1, 1)
  %g = attn.attention_grad %q, %q, %q, %o, %l, %o wrt(%x : tensor<?xf32>)
    score(%s, %b, %h, %m, %n) {
      %y = tensor.extract %x[%m] : tensor<?xf32>
      %z = tensor.extract %x[%n] : tensor<?xf32>
      %u = arith.addf %s, %y : f32
      %t = arith.addf %u, %z : f32
      attn.yield %t : f32
    } : !q, !q, !q, !q, !l, !q -> d_wrt(tensor<?xf32>)
  return %g : tensor<?xf32>
}

// -----

!q = tensor<?x?x?x16xf32>
!l = tensor<?x?x?xf32>

// A score that does not move with the tensor: zeros.
// CHECK-LABEL: func @unmoved(
func.func @unmoved(%q: !q, %o: !q, %l: !l, %x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: %[[ZEROS:.*]] = linalg.fill
  // CHECK-NOT: scf.forall
  // CHECK: return %[[ZEROS]]
  %g = attn.attention_grad %q, %q, %q, %o, %l, %o wrt(%x : tensor<?xf32>) : !q, !q, !q, !q, !l, !q -> d_wrt(tensor<?xf32>)
  return %g : tensor<?xf32>
}

// -----

!q = tensor<?x?x?x16xf32>
!l = tensor<?x?x?xf32>

// Of no elements there is no part that a block could own.
// CHECK-LABEL: func @no_elements(
func.func @no_elements(%q: !q, %o: !q, %l: !l, %x: tensor<0xf32>) -> tensor<0xf32> {
  // CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<0xf32>
  // CHECK-NOT: attn.grad_captured_step
  // CHECK: return %[[ZEROS]]
  %g = attn.attention_grad %q, %q, %q, %o, %l, %o wrt(%x : tensor<0xf32>)
    score(%s, %b, %h, %m, %n) {
      %y = tensor.extract %x[%h] : tensor<0xf32>
      %t = arith.addf %s, %y : f32
      attn.yield %t : f32
    } : !q, !q, !q, !q, !l, !q -> d_wrt(tensor<0xf32>)
  return %g : tensor<0xf32>
}

// -----

// Keys of a tensor that is known to have none, though its type does not say so.
// CHECK-LABEL: func @no_keys(
func.func @no_keys(%q: tensor<1x1x?x4xf32>, %l: tensor<1x1x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: scf.forall
  // CHECK-NOT: attn.grad_captured_step
  // CHECK: return
  %c0 = arith.constant 0 : index
  %k = tensor.empty(%c0) : tensor<1x1x?x4xf32>
  %g = attn.attention_grad %q, %k, %k, %q, %l, %q wrt(%x : tensor<?xf32>)
    score(%s, %b, %h, %m, %n) {
      %y = tensor.extract %x[%h] : tensor<?xf32>
      %t = arith.addf %s, %y : f32
      attn.yield %t : f32
    } : tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?xf32>, tensor<1x1x?x4xf32> -> d_wrt(tensor<?xf32>)
  return %g : tensor<?xf32>
}
