// RUN: attn-opt %s --attn-to-online --attn-cpu-append-destinations --attn-cpu-bufferize --cse --canonicalize \
// RUN:   --attn-cpu-fuse-gradients | FileCheck %s

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>

// CHECK: func.func private @attn_cpu_threads() -> index

// CHECK-LABEL: func @all(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?x?x?x64xbf16
// Five products by threads that have whole heads, or seven by all.
// CHECK:         %[[HEADS:.*]] = arith.muli
// CHECK:         %[[THREADS:.*]] = call @attn_cpu_threads()
// CHECK:         %[[ROUNDS:.*]] = arith.ceildivui %[[HEADS]], %[[THREADS]]
// CHECK:         %[[PAYS:.*]] = arith.cmpi ule
// CHECK:         scf.if %[[PAYS]] {
// CHECK:           %[[SUM:.*]] = memref.alloc({{.*}} : memref<?x?x?x64xf32>
// The sum starts with zeros, a part for each block of rows,
// CHECK:           scf.forall
// CHECK:             %[[PART:.*]] = memref.subview %[[SUM]]
// CHECK-NOT:         attn.grad_query_step
// CHECK:             linalg.fill {{.*}} outs(%[[PART]]
// is added to by one block for each key head,
// CHECK:           scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}, 1)
// CHECK:             scf.for
// CHECK:               scf.for
// CHECK:                 scf.for
// CHECK:                   %[[ROWS:.*]] = memref.subview {{.*}} : memref<?x64xf32, {{.*}}> to memref<{{.*}}x64xf32
// CHECK:                   attn.grad_fused_step {{.*}} outs(%[[ROWS]], %{{.*}}, %{{.*}})
// and is scaled and rounded by rows.
// CHECK:           scf.forall
// CHECK:             %[[PART:.*]] = memref.subview %[[SUM]]
// CHECK-NOT:         attn.grad_query_step
// CHECK:             attn.grad_end %[[PART]] scale
// CHECK:         } else {
// CHECK:           attn.grad_query_step
// CHECK:           attn.grad_key_value_step
// CHECK-NOT:     attn.grad_fused_step
func.func @all(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %g#0, %g#1, %g#2 : !t, !t, !t
}

// Without all three gradients there are no products to spare.
// CHECK-LABEL: func @some(
// CHECK-NOT:     scf.if
func.func @some(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !row, %do: !t) -> (!t, !t) {
  %g:2 = attn.attention_grad %q, %k, %v, %o, %lse, %do : !t, !t, !t, !t, !row, !t -> d_query(!t) d_value(!t)
  return %g#0, %g#1 : !t, !t
}
