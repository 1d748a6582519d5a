// RUN: attn-opt %s --attn-to-online="target=cuda" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

// The grid becomes the kernel's; tensors become memrefs, results last.
// CHECK-LABEL: func.func @causal
// CHECK-SAME:    %[[Q:[^:]*]]: memref<?x?x?x128xbf16
// CHECK-SAME:    grid = {{\[\[}}#plan.extent<argument = 0, dim = 2, divisor = 128>], [#plan.extent<argument = 0, dim = 1>], [#plan.extent<argument = 0, dim = 0>]]
func.func @causal(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // The last rows come first.
  // CHECK:       arith.ceildivui
  // CHECK:       arith.subi
  // Partial tiles come first. They end with the keys, and begin with those of other steps; there and on the diagonal coordinates
  // decide, in one comparison. The scale is folded into the exponent.
  // CHECK:       scf.if
  // CHECK:         scf.for
  // CHECK:           %[[SIZE:.*]] = affine.min
  // CHECK:           %[[BEFORE:.*]] = arith.subi %c128, %[[SIZE]]
  // CHECK:           %[[FIRST:.*]] = arith.subi %{{.*}}, %[[BEFORE]]
  // CHECK:           tile.load %[[Q]]
  // CHECK:           tile.load {{.*}}%[[FIRST]], %c0]
  // CHECK:           tile.mma {{.*}} {transpose_rhs}
  // CHECK-NOT:       arith.mulf {{.*}} : tensor<128x128xf32>
  // CHECK:           %[[M:.*]] = tile.coord 0
  // CHECK:           %[[N:.*]] = tile.coord 1
  // CHECK:           %[[COUNT:.*]] = arith.maxsi {{.*}} : tensor<128x128xindex>
  // CHECK-NEXT:      %[[KEEP:.*]] = arith.cmpi ult, %[[N]], %[[COUNT]]
  // CHECK-NOT:       arith.cmpi
  // CHECK:           arith.select %[[KEEP]]
  // CHECK:           tile.reduce max
  // CHECK:           math.fma {{.*}} : tensor<128x128xf32>
  // Full tiles carry no mask.
  // CHECK:         scf.for
  // CHECK-NOT:       tile.coord
  // CHECK:           tile.reduce max
  // CHECK:           math.exp2 {{.*}} : tensor<128x128xf32>
  // CHECK:           tile.reduce add {{.*}} -> tensor<128x4xf32>
  // CHECK:           arith.truncf {{.*}} to tensor<128x128xbf16>
  // CHECK:           tile.mma
  // CHECK-NOT:     scf.for
  // CHECK:       tile.reduce add {{.*}} : tensor<128x4xf32> -> tensor<128xf32>
  // CHECK:       tile.store
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
    : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// A scale that only the caller knows may be negative: it is applied before the maximum.
// CHECK-LABEL: func.func @run_time_scale
func.func @run_time_scale(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %scale: f32) -> tensor<?x?x?x64xbf16> {
  // CHECK:       tile.mma {{.*}} {transpose_rhs}
  // CHECK:       arith.mulf {{.*}} : tensor<192x128xf32>
  // CHECK:       tile.reduce max
  // CHECK-NOT:   math.fma
  // CHECK:       arith.subf {{.*}} : tensor<192x128xf32>
  %o = attn.attention %q, %k, %v scale(%scale)
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// Where the score reads a tensor, full tiles and others share a loop; full ones pass over the mask.
// CHECK-LABEL: func.func @shared_loop
func.func @shared_loop(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %bias: tensor<?x?xf32>) -> tensor<?x?x?x128xbf16> {
  // CHECK:       scf.for
  // CHECK:         tile.mma {{.*}} {transpose_rhs}
  // CHECK:         tile.gather
  // CHECK:         scf.if {{.*}} -> (tensor<128x128xf32>)
  // CHECK-NEXT:      scf.yield
  // CHECK-NEXT:    } else {
  // CHECK-NOT:       arith.ori
  // CHECK:           arith.cmpi sle
  // CHECK-NOT:       arith.ori
  // CHECK:           arith.select
  // CHECK:         tile.reduce max
  // CHECK-NOT:   scf.for
  // CHECK:       tile.store
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
    score(%s, %b, %h, %m, %n) {
      %x = tensor.extract %bias[%h, %n] : tensor<?x?xf32>
      %t = arith.addf %s, %x : f32
      attn.yield %t : f32
    } : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// With a least key in the mask, it is the one that the greater of it and the step's first is compared with.
// CHECK-LABEL: func.func @window
func.func @window(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  // CHECK:       affine.min
  // CHECK:       %[[LEAST:.*]] = arith.maxsi {{.*}} : tensor<192x128xindex>
  // CHECK-NEXT:  arith.cmpi sge, %{{.*}}, %[[LEAST]]
  // CHECK-NOT:   arith.cmpi
  // CHECK:       arith.select
  %o = attn.attention %q, %k, %v variants [#attn.window<64, -1, top_left>]
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
