// RUN: attn-opt %s --attn-generalize-extents | FileCheck %s

// Batches, heads and lengths go, columns stay; what is captured is read by position alone.
// CHECK-LABEL: func.func @attention
// CHECK-SAME:    (%{{.*}}: tensor<?x?x?x64xbf16>, %{{.*}}: tensor<?x?x?x64xbf16>, %{{.*}}: tensor<?x?x?x96xbf16>, %[[IDS:.*]]: tensor<?x?xi32>, %{{.*}}: tensor<?xf32>, %[[SCALE:.*]]: f32)
// CHECK-SAME:    -> (tensor<?x?x?x96xbf16>, tensor<?x?x?xf32>)
func.func @attention(%q: tensor<2x4x7x64xbf16>, %k: tensor<2x2x33x64xbf16>, %v: tensor<2x2x33x96xbf16>, %ids: tensor<2x33xi32>,
    %sink: tensor<4xf32>, %scale: f32) -> (tensor<2x4x7x96xbf16>, tensor<2x4x7xf32>) {
  // CHECK: attn.assume nondecreasing %[[IDS]] : tensor<?x?xi32>
  %sorted = attn.assume nondecreasing %ids : tensor<2x33xi32>
  // CHECK: attn.attention
  // CHECK: tensor.extract %{{.*}} : tensor<?x?xi32>
  // CHECK: : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x96xbf16> -> tensor<?x?x?x96xbf16>, tensor<?x?x?xf32>
  %o, %lse = attn.attention %q, %k, %v scale(%scale) sink(%sink : tensor<4xf32>)
    mask(%b, %h, %m, %n) {
      %id = tensor.extract %sorted[%b, %n] : tensor<2x33xi32>
      %c3 = arith.constant 3 : i32
      %keep = arith.cmpi slt, %id, %c3 : i32
      attn.yield %keep : i1
    }
    : tensor<2x4x7x64xbf16>, tensor<2x2x33x64xbf16>, tensor<2x2x33x96xbf16> -> tensor<2x4x7x96xbf16>, tensor<2x4x7xf32>
  return %o, %lse : tensor<2x4x7x96xbf16>, tensor<2x4x7xf32>
}

// The keys of a page make a kernel too.
// CHECK-LABEL: func.func @paged
// CHECK-SAME:    (%{{.*}}: tensor<?x?x?x64xbf16>, %{{.*}}: tensor<?x32x?x64xbf16>, %{{.*}}: tensor<?x?xi32>) -> tensor<?x?x?x64xbf16>
func.func @paged(%q: tensor<2x4x7x64xbf16>, %pool: tensor<9x32x2x64xbf16>, %table: tensor<2x5xi32>) -> tensor<2x4x7x64xbf16> {
  // CHECK: attn.paged %{{.*}} : tensor<?x32x?x64xbf16>, tensor<?x?xi32> -> tensor<?x?x?x64xbf16>
  %k = attn.paged %pool[%table] : tensor<9x32x2x64xbf16>, tensor<2x5xi32> -> tensor<2x2x160x64xbf16>
  %o = attn.attention %q, %k, %k : tensor<2x4x7x64xbf16>, tensor<2x2x160x64xbf16>, tensor<2x2x160x64xbf16> -> tensor<2x4x7x64xbf16>
  return %o : tensor<2x4x7x64xbf16>
}

// Another op's types depend on the extents: the function stays.
// CHECK-LABEL: func.func @cast(%{{.*}}: tensor<2x4x7x64xbf16>
func.func @cast(%q: tensor<2x4x7x64xbf16>, %k: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %cast = tensor.cast %q : tensor<2x4x7x64xbf16> to tensor<?x?x?x64xbf16>
  %o = attn.attention %cast, %k, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// Calls state the extents of what they call.
// CHECK-LABEL: func.func @called(%{{.*}}: tensor<2x4x7x64xbf16>
func.func @called(%q: tensor<2x4x7x64xbf16>) -> tensor<2x4x7x64xbf16> {
  return %q : tensor<2x4x7x64xbf16>
}
// CHECK-LABEL: func.func @caller(%{{.*}}: tensor<2x4x7x64xbf16>
func.func @caller(%q: tensor<2x4x7x64xbf16>) -> tensor<2x4x7x64xbf16> {
  %o = func.call @called(%q) : (tensor<2x4x7x64xbf16>) -> tensor<2x4x7x64xbf16>
  return %o : tensor<2x4x7x64xbf16>
}

// What is assumed of a tensor that keeps its type has that type too.
// CHECK-LABEL: func.func @assumed(
func.func @assumed(%q: tensor<2x4x7x64xbf16>) -> tensor<2x4x7x64xbf16> {
  %ids = tensor.empty() : tensor<2x7xi32>
  // CHECK: attn.assume nondecreasing %{{.*}} : tensor<2x7xi32>
  %sorted = attn.assume nondecreasing %ids : tensor<2x7xi32>
  // CHECK: -> tensor<?x?x?x64xbf16>
  %o = attn.attention %q, %q, %q variants [#attn.document] captures(%sorted, %sorted : tensor<2x7xi32>, tensor<2x7xi32>)
    : tensor<2x4x7x64xbf16>, tensor<2x4x7x64xbf16>, tensor<2x4x7x64xbf16> -> tensor<2x4x7x64xbf16>
  return %o : tensor<2x4x7x64xbf16>
}
