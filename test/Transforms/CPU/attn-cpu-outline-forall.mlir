// RUN: attn-opt %s --attn-cpu-outline-forall | FileCheck %s

// CHECK: llvm.func @attn_cpu_parallel_for(!llvm.ptr, !llvm.ptr, i64)

// The body gets its values from the context and its positions from one index; the last dimension runs backwards.
// CHECK-LABEL: llvm.func internal @tiles_block0(
// CHECK-SAME:    %[[CONTEXT:.*]]: !llvm.ptr, %[[I:.*]]: i64)
// CHECK: llvm.getelementptr %[[CONTEXT]][0, 0]
// CHECK: %[[INDEX:.*]] = builtin.unrealized_conversion_cast %[[I]] : i64 to index
// CHECK: %[[TILE:.*]] = arith.remui %[[INDEX]], %[[COUNT:.*]] : index
// CHECK: %[[HEAD:.*]] = arith.divui %[[INDEX]], %[[COUNT]] : index
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %{{.*}} : index
// CHECK: %[[REVERSED:.*]] = arith.subi %[[LAST]], %[[TILE]] : index
// CHECK: %[[M0:.*]] = arith.muli %[[REVERSED]], %{{.*}} : index
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xf32>
// CHECK: llvm.return

// CHECK-LABEL: func.func @tiles(
// CHECK: llvm.alloca {{.*}} !llvm.struct<(f32, struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>, i64, i64)>
// CHECK: %[[BODY:.*]] = llvm.mlir.addressof @tiles_block0
// CHECK: llvm.call @attn_cpu_parallel_for(%[[BODY]]
// CHECK-NOT: scf.forall
func.func @tiles(%a: memref<?x?xf32>, %x: f32, %heads: index, %rows: index) {
  scf.forall (%h, %m) = (0, 0) to (%heads, %rows) step (1, 64) {
    memref.store %x, %a[%h, %m] : memref<?x?xf32>
  }
  return
}
