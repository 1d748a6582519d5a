// RUN: attn-opt %s --attn-prune-masked-tiles=certain-first --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// Partial tiles go from the last to the first. The first 32 rows need none before the one that has their own last key, but all
// rows have one of them.
// CHECK-LABEL: func @causal(
func.func @causal(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: scf.if
  // CHECK:   %[[LAST:.*]] = arith.subi %[[END:.*]], %c16
  // CHECK:   %[[RIGHT:.*]] = arith.minsi %{{.*}}, %[[LAST]]
  // CHECK:   %[[PASSED:.*]] = arith.subi %[[END]], %[[PART_END:.*]] : index
  // CHECK:   %[[LATE:.*]] = arith.addi %[[RIGHT]], %[[PASSED]]
  // CHECK:   %[[SAFE:.*]] = arith.maxsi %[[LATE]], %[[RIGHT]]
  // CHECK:   %[[PART:.*]] = arith.minsi %[[SAFE]], %[[LAST]]
  // CHECK:   %[[BEGIN:.*]] = attn.part_begin %[[RIGHT]] for %[[PART]], %[[RIGHT]]
  // CHECK:   %[[MIRROR:.*]] = arith.addi %[[RIGHT]], %[[LAST]]
  // CHECK:   scf.for %[[T:.*]] = %[[BEGIN]] to %[[END]] step %c16
  // CHECK:     arith.subi %[[MIRROR]], %[[T]]
  // CHECK:     attn.online_attention
  // CHECK:   scf.for %{{.*}} = %c0 to %[[RIGHT]] step %c16
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c16 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (16, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        {attn.schedule = #attn.schedule<block_m = 64, block_n = 16, consumers = 2, apart = true>}
        mask(%b, %h, %i, %j) {
          %keep = arith.cmpi sle, %j, %i : index
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}

// Bounds that are searched for are those of the block.
// CHECK-LABEL: func @documents(
// CHECK-NOT: attn.part_begin
func.func @documents(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %ids: tensor<?x?xi32>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %sorted = attn.assume nondecreasing %ids : tensor<?x?xi32>
  %r:3 = scf.for %n0 = %c0 to %n step %c16 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (16, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        {attn.schedule = #attn.schedule<block_m = 64, block_n = 16, consumers = 2, apart = true>}
        mask(%b, %h, %i, %j) {
          %x0 = tensor.extract %sorted[%b, %i] : tensor<?x?xi32>
          %x1 = tensor.extract %sorted[%b, %j] : tensor<?x?xi32>
          %same = arith.cmpi eq, %x0, %x1 : i32
          %causal = arith.cmpi sle, %j, %i : index
          %keep = arith.andi %same, %causal : i1
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
