// RUN: attn-opt %s --attn-hoist-searches --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

// CHECK: remark: [Missed] hoist-searches | Category:attn | Remark="searched in each block: it depends on what only the block computes"
// CHECK: remark: [Missed] hoist-searches | Category:attn | Remark="searched in each block: it depends on what only the block computes"
// CHECK-NOT: remark

// A number that changes with the turns of a loop, and one that a branch may not ask for.
// CHECK-LABEL: func @stays(
// CHECK: scf.for
// CHECK: scf.while
// CHECK: scf.if
// CHECK: scf.while
func.func @stays(%ids: tensor<?xi32>, %yes: i1) -> tensor<2x2x128xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<2x2x128xi32>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128xi32>) {
    %sum = scf.for %n = %c0 to %c4 step %c1 iter_args(%s = %c0) -> index {
      %found = scf.while (%x = %n) : (index) -> index {
        %id = tensor.extract %ids[%x] : tensor<?xi32>
        %at = arith.index_cast %id : i32 to index
        %isBelow = arith.cmpi slt, %at, %t : index
        scf.condition(%isBelow) %x : index
      } do {
      ^bb0(%x: index):
        %next = arith.addi %x, %c1 : index
        scf.yield %next : index
      }
      %next = arith.addi %s, %found : index
      scf.yield %next : index
    }
    %some = scf.if %yes -> index {
      %found = scf.while (%x = %t) : (index) -> index {
        %id = tensor.extract %ids[%x] : tensor<?xi32>
        %at = arith.index_cast %id : i32 to index
        %isBelow = arith.cmpi slt, %at, %t : index
        scf.condition(%isBelow) %x : index
      } do {
      ^bb0(%x: index):
        %next = arith.addi %x, %c1 : index
        scf.yield %next : index
      }
      scf.yield %found : index
    } else {
      scf.yield %sum : index
    }
    %number = arith.index_cast %some : index to i32
    %list = tensor.from_elements %number : tensor<1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %list into %o[%i, %j, %t] [1, 1, 1] [1, 1, 1] : tensor<1xi32> into tensor<2x2x128xi32>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128xi32>
}
