// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// A merge that somebody wrote is a grid of its own: blocks of as few rows as lanes along the columns leave. Partial results of 16
// bits are widened as they are loaded.
// CHECK-LABEL: func.func @merge_merge(
// CHECK-SAME:    %[[P:.*]]: memref<?x?x?x?x128xbf16, strided<[?, ?, ?, ?, 1]>>, %[[L:.*]]: memref<?x?x?x?xf32, {{.*}}>, %[[O:.*]]: memref<?x?x?x128xbf16, {{.*}}>, %[[E:[a-z0-9]+]]: memref<?x?x?xf32,
// CHECK-SAME:    tile.kernel = #tile.kernel<{{.*}}grid = {{\[\[}}#plan.extent<argument = 1, dim = 3, divisor = 4>], [#plan.extent<argument = 1, dim = 2>], [#plan.extent<argument = 1, dim = 1>]]
// CHECK:         scf.for
// CHECK:           tile.load %[[L]][{{.*}} : memref<?x?x?x?xf32, {{.*}}> -> tensor<4xf32>
// CHECK:           %[[PART:.*]] = tile.load %[[P]][{{.*}} -> tensor<4x128xbf16>
// CHECK:           arith.extf %[[PART]]
// CHECK:         %[[NARROW:.*]] = arith.truncf
// CHECK:         tile.store %[[NARROW]] to %[[O]]
// CHECK:         tile.store %{{.*}} to %[[E]]
func.func @merge(%p: tensor<?x?x?x?x128xbf16>, %l: tensor<?x?x?x?xf32>) -> (tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %b = tensor.dim %p, %c1 : tensor<?x?x?x?x128xbf16>
  %h = tensor.dim %p, %c2 : tensor<?x?x?x?x128xbf16>
  %m = tensor.dim %p, %c3 : tensor<?x?x?x?x128xbf16>
  %o = tensor.empty(%b, %h, %m) : tensor<?x?x?x128xbf16>
  %e = tensor.empty(%b, %h, %m) : tensor<?x?x?xf32>
  %r:2 = attn.merge %p, %l outs(%o, %e) : tensor<?x?x?x?x128xbf16>, tensor<?x?x?x?xf32>, tensor<?x?x?x128xbf16>, tensor<?x?x?xf32> -> tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
  return %r#0, %r#1 : tensor<?x?x?x128xbf16>, tensor<?x?x?xf32>
}

// -----

// With fewer dimensions in front, grids have fewer.
// CHECK-LABEL: func.func @heads_merge(
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 1, dim = 2, divisor = 8>], [#plan.extent<argument = 1, dim = 1>], []]
func.func @heads(%p: tensor<2x?x?x64xf32>, %l: tensor<2x?x?xf32>) -> tensor<?x?x64xf16> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %h = tensor.dim %p, %c1 : tensor<2x?x?x64xf32>
  %m = tensor.dim %p, %c2 : tensor<2x?x?x64xf32>
  %o = tensor.empty(%h, %m) : tensor<?x?x64xf16>
  %r = attn.merge %p, %l outs(%o) : tensor<2x?x?x64xf32>, tensor<2x?x?xf32>, tensor<?x?x64xf16> -> tensor<?x?x64xf16>
  return %r : tensor<?x?x64xf16>
}

// -----

// CHECK-LABEL: func.func @rows_merge(
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 1, dim = 1, divisor = 8>], [], []]
func.func @rows(%p: tensor<?x?x64xf32>, %l: tensor<?x?xf32>) -> tensor<?x64xf32> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %p, %c1 : tensor<?x?x64xf32>
  %o = tensor.empty(%m) : tensor<?x64xf32>
  %r = attn.merge %p, %l outs(%o) : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}
