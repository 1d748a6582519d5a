// RUN: attn-opt %s --attn-to-online="target=cuda way=long" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

!t = tensor<?x?x?x64xf16>

// Some row keeps each key up to the last.
// CHECK-LABEL: func.func @causal
// CHECK-NOT: tile.clear_unread
func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}

// Keys of a window have none between them that is dropped: only where a tile begins before the first of all.
// CHECK-LABEL: func.func @window
func.func @window(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: %[[FIRST:.*]] = arith.maxsi
  // CHECK: %[[BEFORE:.*]] = arith.subi %c128{{.*}}, %{{.*}}
  // CHECK: %[[P:.*]] = arith.truncf
  // CHECK: %[[V:.*]] = tile.load
  // CHECK: %[[IS_BEFORE:.*]] = arith.cmpi sgt, %[[BEFORE]], %c0
  // CHECK: %[[W:.*]] = tile.clear_unread %[[V]] by %[[P]] if %[[IS_BEFORE]]
  // CHECK: tile.mma %[[P]], %[[W]]
  // Full tiles.
  // CHECK: scf.for
  // CHECK-NOT: tile.clear_unread
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>, #attn.window<100, -1, bottom_right>] : !t, !t, !t -> !t
  return %o : !t
}

// Any key may be dropped, and rows that are not there would keep others than those that are.
// CHECK-LABEL: func.func @every_third
func.func @every_third(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: arith.minsi {{.*}} : tensor<192x128xindex>
  // CHECK: %[[P:.*]] = arith.truncf
  // CHECK: %[[V:.*]] = tile.load
  // CHECK: tile.clear_unread %[[V]] by %[[P]] :
  // CHECK: scf.for
  // CHECK: tile.clear_unread %{{.*}} by %{{.*}} :
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %s = arith.addi %m, %n : index
      %r = arith.remui %s, %c3 : index
      %keep = arith.cmpi eq, %r, %c1 : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}

// Of the tiles in one loop, those that are not full.
// CHECK-LABEL: func.func @documents(
func.func @documents(%q: !t, %k: !t, %v: !t, %ids_q: tensor<?x?xi32>, %ids_k: tensor<?x?xi32>) -> !t {
  // CHECK: scf.for
  // CHECK: %[[FULL:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
  // CHECK: %[[PARTIAL:.*]] = arith.xori %[[FULL]], %true
  // CHECK: tile.clear_unread %{{.*}} by %{{.*}} if %[[PARTIAL]]
  %sorted_q = attn.assume nondecreasing %ids_q : tensor<?x?xi32>
  %sorted_k = attn.assume nondecreasing %ids_k : tensor<?x?xi32>
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.causal<bottom_right>]
    captures(%sorted_q, %sorted_k : tensor<?x?xi32>, tensor<?x?xi32>) : !t, !t, !t -> !t
  return %o : !t
}

// Of listed tiles, those that the mask cuts: the last loop may have one of them before its first step.
// CHECK-LABEL: func.func @listed(
// CHECK: scf.if
// CHECK: tile.clear_unread %{{.*}} by %{{.*}} :
// CHECK: scf.for
// CHECK: tile.clear_unread %{{.*}} by %{{.*}} :
// CHECK: scf.for
// CHECK-NOT: tile.clear_unread
// CHECK: return
func.func @listed(%q: !t, %k: !t, %v: !t, %ids: tensor<?x?xi32>) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.document] captures(%ids, %ids : tensor<?x?xi32>, tensor<?x?xi32>) : !t, !t, !t -> !t
  return %o : !t
}

// A score of -inf drops a key, too, where the region writes it.
// CHECK-LABEL: func.func @score
func.func @score(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: tile.clear_unread %{{.*}} by %{{.*}} :
  %o = attn.attention %q, %k, %v score(%s, %b, %h, %m, %n) {
      %ninf = arith.constant 0xFF800000 : f32
      %c40 = arith.constant 40 : index
      %drop = arith.cmpi sge, %n, %c40 : index
      %t = arith.select %drop, %ninf, %s : f32
      attn.yield %t : f32
    } : !t, !t, !t -> !t
  return %o : !t
}

// One that is read is a score like others.
// CHECK-LABEL: func.func @bias
func.func @bias(%q: !t, %k: !t, %v: !t, %bias: tensor<?xf32>) -> !t {
  // CHECK-NOT: tile.clear_unread
  // CHECK: return
  %o = attn.attention %q, %k, %v score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%n] : tensor<?xf32>
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    } : !t, !t, !t -> !t
  return %o : !t
}
