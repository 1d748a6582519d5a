// RUN: attn-opt %s --attn-prune-masked-tiles --split-input-file | FileCheck %s

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// Tiles of eight keys at every fourth key are not what attn-tile-kv-loop makes.
// CHECK-LABEL: func @overlapping(
func.func @overlapping(%q: tensor<8x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %n: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-1: scf.for
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %step = arith.constant 4 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %tile = tensor.extract_slice %k[%n0, 0] [8, 16] [1, 1] : tensor<?x16xf16> to tensor<8x16xf16>
    %state:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%a, %x, %s)
      : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}

// -----

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// A step of 0 would divide by it.
// CHECK-LABEL: func @endless(
func.func @endless(%q: tensor<8x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %n: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-1: scf.for
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %step = arith.constant 0 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %tile = tensor.extract_slice %k[%n0, 0] [8, 16] [1, 1] : tensor<?x16xf16> to tensor<8x16xf16>
    %state:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%a, %x, %s)
      : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}

// -----

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// Nor is a loop that does something else beside its step.
// CHECK-LABEL: func @two_steps(
func.func @two_steps(%q: tensor<8x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %n: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-2: attn.online_attention
  // CHECK-NOT: attn.online_attention
  %c0 = arith.constant 0 : index
  %step = arith.constant 8 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (8, -d0 + s0)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %state:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%a, %x, %s)
      mask(%b, %h, %m, %j) {
        %keep = arith.constant false
        attn.yield %keep : i1
      } : tensor<8x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    %other:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%state#0, %x, %s)
      : tensor<8x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}

// -----

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// Nor one whose step needs what only the loop has.
// CHECK-LABEL: func @query_of_the_loop(
func.func @query_of_the_loop(%q: tensor<?x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %n: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-1: attn.online_attention
  // CHECK-NOT: attn.online_attention
  %c0 = arith.constant 0 : index
  %step = arith.constant 8 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %rows = tensor.extract_slice %q[%n0, 0] [8, 16] [1, 1] : tensor<?x16xf16> to tensor<8x16xf16>
    %tile = tensor.extract_slice %k[%n0, 0] [8, 16] [1, 1] : tensor<?x16xf16> to tensor<8x16xf16>
    %state:3 = attn.online_attention %rows, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%a, %x, %s)
      mask(%b, %h, %m, %j) {
        %keep = arith.cmpi sle, %j, %m : index
        attn.yield %keep : i1
      } : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}

// -----

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// Nor one over slices of more than keys.
// CHECK-LABEL: func @heads(
func.func @heads(%q: tensor<8x16xf16>, %k: tensor<1x?x16xf16>, %scale: f32, %n: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-1: attn.online_attention
  // CHECK-NOT: attn.online_attention
  %c0 = arith.constant 0 : index
  %step = arith.constant 8 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %tile = tensor.extract_slice %k[%n0, 0, 0] [1, 8, 16] [1, 1, 1] : tensor<1x?x16xf16> to tensor<8x16xf16>
    %state:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%a, %x, %s)
      mask(%b, %h, %m, %j) {
        %keep = arith.cmpi sle, %j, %m : index
        attn.yield %keep : i1
      } : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}

// -----

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// Rows that change from tile to tile are not those of a block.
// CHECK-LABEL: func @moving(
func.func @moving(%q: tensor<8x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %n: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-1: scf.for
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %step = arith.constant 8 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %tile = tensor.extract_slice %k[%n0, 0] [8, 16] [1, 1] : tensor<?x16xf16> to tensor<8x16xf16>
    %state:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %n0, %n0) outs(%a, %x, %s)
      mask(%b, %h, %m, %j) {
        %keep = arith.cmpi sle, %j, %m : index
        attn.yield %keep : i1
      } : tensor<8x16xf16>, tensor<8x16xf16>, tensor<8x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}

// -----

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// Nor are tiles that end where the keys do not: here each has one key less.
// CHECK-LABEL: func @shorter_tiles(
func.func @shorter_tiles(%q: tensor<8x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %n: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-1: scf.for
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %step = arith.constant 8 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %size = affine.min affine_map<(d0)[s0] -> (8, -d0 + s0 - 1)>(%n0)[%n]
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %state:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%a, %x, %s)
      mask(%b, %h, %m, %j) {
        %keep = arith.cmpi sle, %j, %m : index
        attn.yield %keep : i1
      } : tensor<8x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}

// -----

!acc = tensor<8x16xf32>
!row = tensor<8xf32>

// Nor tiles whose number of keys anybody gives.
// CHECK-LABEL: func @any_size(
func.func @any_size(%q: tensor<8x16xf16>, %k: tensor<?x16xf16>, %scale: f32, %n: index, %size: index, %acc: !acc, %max: !row, %sum: !row) -> !acc {
  // CHECK-COUNT-1: scf.for
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %step = arith.constant 8 : index
  %r:3 = scf.for %n0 = %c0 to %n step %step iter_args(%a = %acc, %x = %max, %s = %sum) -> (!acc, !row, !row) {
    %tile = tensor.extract_slice %k[%n0, 0] [%size, 16] [1, 1] : tensor<?x16xf16> to tensor<?x16xf16>
    %state:3 = attn.online_attention %q, %tile, %tile scale(%scale) at(%c0, %c0, %c0, %n0) outs(%a, %x, %s)
      mask(%b, %h, %m, %j) {
        %keep = arith.cmpi sle, %j, %m : index
        attn.yield %keep : i1
      } : tensor<8x16xf16>, tensor<?x16xf16>, tensor<?x16xf16>, !acc, !row, !row -> !acc, !row, !row
    scf.yield %state#0, %state#1, %state#2 : !acc, !row, !row
  }
  return %r#0 : !acc
}
