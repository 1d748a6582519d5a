// RUN: attn-opt %s --attn-prune-masked-tiles=certain-first --canonicalize --cse | FileCheck %s

!acc = tensor<64x16xf32>
!row = tensor<64xf32>

// The last tile, perhaps a short one, comes first, if there is any; the loop stops before it and has whole tiles only.
// CHECK-LABEL: func @no_mask(
// CHECK-SAME: %[[M0:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index, %[[ACC:[a-z0-9]+]]: tensor<64x16xf32>
func.func @no_mask(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: %[[WHOLE:.*]] = arith.muli
  // CHECK: %[[END:.*]] = arith.muli
  // CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[END]], %c0
  // CHECK: %[[R:.*]]:3 = scf.if %[[ANY]]
  // CHECK:   arith.subi %[[END]], %c1
  // CHECK:   arith.divui
  // CHECK:   %[[LAST:.*]] = arith.muli
  // CHECK:   %[[SIZE:.*]] = affine.min
  // CHECK:   tensor.extract_slice %{{.*}}[%[[LAST]], 0] [%[[SIZE]], 16]
  // CHECK:   %[[FIRST:.*]]:3 = attn.online_attention {{.*}} at({{.*}}, %[[LAST]]) outs(%[[ACC]]
  // CHECK:   %[[STOP:.*]] = arith.minsi %[[WHOLE]], %[[LAST]]
  // CHECK:   %[[F:.*]]:3 = scf.for %[[T:.*]] = %c0 to %[[STOP]] step %c32 iter_args(%{{.*}} = %[[FIRST]]#0
  // CHECK:     tensor.extract_slice %{{.*}}[%[[T]], 0] [32, 16]
  // CHECK-NOT: scf.for
  // CHECK:   scf.yield %[[F]]#0
  // CHECK: else
  // CHECK:   scf.yield %[[ACC]]
  // CHECK: return %[[R]]#0
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}

// Partial tiles come first, those on the right and then those on the left, in a loop that is certain to run; then the full ones.
// The first tile has no key before the window.
// CHECK-LABEL: func @plain_window(
func.func @plain_window(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: arith.maxsi
  // CHECK: arith.maxsi
  // CHECK: arith.maxsi
  // CHECK: arith.maxsi
  // CHECK: arith.muli
  // CHECK-NEXT: %[[END:.*]] = arith.muli
  // CHECK-NEXT: %[[ANY:.*]] = arith.cmpi slt, %[[BEGIN:.*]], %[[END]] : index
  // CHECK-NEXT: scf.if %[[ANY]]
  // CHECK:   %[[LAST:.*]] = arith.subi %[[END]], %c32
  // CHECK:   %[[RIGHT:.*]] = arith.minsi %[[FULL_END:.*]], %[[LAST]]
  // CHECK:   %[[LEFT_END:.*]] = arith.minsi %[[FULL_BEGIN:.*]], %[[RIGHT]]
  // CHECK:   %[[LENGTH:.*]] = arith.subi %[[LEFT_END]], %[[BEGIN]]
  // CHECK:   %[[BEHIND:.*]] = arith.addi %[[END]], %[[LENGTH]]
  // CHECK:   %[[UNTIL:.*]] = arith.maxsi %[[END]], %[[BEHIND]]
  // CHECK:   %[[SHIFT:.*]] = arith.subi %[[END]], %[[BEGIN]]
  // CHECK:   %[[P:.*]]:3 = scf.for %[[I:.*]] = %[[RIGHT]] to %[[UNTIL]] step %c32
  // CHECK:     %[[IS_RIGHT:.*]] = arith.cmpi slt, %[[I]], %[[END]]
  // CHECK:     %[[SHIFTED:.*]] = arith.subi %[[I]], %[[SHIFT]]
  // CHECK:     %[[N0:.*]] = arith.select %[[IS_RIGHT]], %[[I]], %[[SHIFTED]]
  // CHECK:     %[[FIRST:.*]] = arith.maxsi %[[N0]], %{{.*}} : index
  // CHECK:     attn.online_attention {{.*}} at({{.*}}, %[[FIRST]]) {{.*}} {attn.kept_keys = "slice"}
  // CHECK:       mask
  // CHECK:   scf.for %{{.*}} = %[[FULL_BEGIN]] to %[[RIGHT]] step %c32 iter_args(%{{.*}} = %[[P]]#0
  // CHECK:     attn.online_attention
  // CHECK-NOT:   mask
  // CHECK: else
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %i, %j) {
          %c100 = arith.constant 100 : index
          %end = arith.addi %j, %c100 : index
          %causal = arith.cmpi sle, %j, %i : index
          %near = arith.cmpi sle, %i, %end : index
          %keep = arith.andi %causal, %near : i1
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}

// The score reads a tensor: one loop has the full tiles and those on the left edge of the window, and a scalar of the tile
// tells them apart.
// CHECK-LABEL: func @window(
func.func @window(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %bias: tensor<?xf32>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: scf.if
  // CHECK:   attn.online_attention
  // CHECK:   scf.for %[[T:[a-z0-9]+]] =
  // CHECK:     tensor.extract_slice %{{.*}}[%[[T]], 0] [32, 16]
  // CHECK-DAG: %[[BEFORE:.*]] = arith.cmpi slt, %[[T]],
  // CHECK-DAG: %[[BEHIND:.*]] = arith.cmpi sge, %[[T]],
  // CHECK:     %[[FULL:.*]] = arith.andi %[[BEHIND]], %[[BEFORE]]
  // CHECK:     attn.online_attention
  // CHECK:       mask
  // CHECK:         %[[KEEP:.*]] = arith.ori %[[FULL]], %{{.*}} : i1
  // CHECK-NEXT:    attn.yield %[[KEEP]]
  // CHECK-NOT: scf.for
  // CHECK: else
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        score(%t, %b, %h, %i, %j) {
          %y = tensor.extract %bias[%j] : tensor<?xf32>
          %u = arith.addf %t, %y : f32
          attn.yield %u : f32
        }
        mask(%b, %h, %i, %j) {
          %c100 = arith.constant 100 : index
          %end = arith.addi %j, %c100 : index
          %causal = arith.cmpi sle, %j, %i : index
          %near = arith.cmpi sle, %i, %end : index
          %keep = arith.andi %causal, %near : i1
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}

// A mask that cannot be decided is on all tiles, the last one too.
// CHECK-LABEL: func @undecided(
func.func @undecided(%q: tensor<64x16xf16>, %k: tensor<?x16xf16>, %table: tensor<?xi1>, %scale: f32, %b0: index, %h0: index, %m0: index, %n: index,
    %acc: !acc, %max: !row, %sum: !row) -> (!acc, !row, !row) {
  // CHECK: scf.if
  // CHECK:   attn.online_attention
  // CHECK:     mask
  // CHECK:   scf.for
  // CHECK:     attn.online_attention
  // CHECK:       mask
  // CHECK-NOT: arith.ori
  // CHECK-NOT: scf.for
  // CHECK: else
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %r:3 = scf.for %n0 = %c0 to %n step %c32 iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (32, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %step:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%b0, %h0, %m0, %n0) outs(%a, %x, %s)
        mask(%b, %h, %i, %j) {
          %keep = tensor.extract %table[%j] : tensor<?xi1>
          attn.yield %keep : i1
        }
        : tensor<64x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %step#0, %step#1, %step#2 : !acc, !row, !row
  }
  return %r#0, %r#1, %r#2 : !acc, !row, !row
}
