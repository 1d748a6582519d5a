// RUN: attn-opt %s "--attn-to-online=target=cuda stay=false" --online-to-tile | FileCheck %s

// The first step of a row begins with sums of zeros: no factor scales them.
// CHECK-LABEL: func.func @attention
// CHECK: %[[ZERO:.+]] = tile.broadcast %[[C:.+]] : f32 -> tensor<128x256xf32>
// CHECK: %[[SUMS:.+]] = tile.broadcast %[[C]] : f32 -> tensor<128xf32>
// CHECK: tile.mma
// CHECK-NOT: arith.mulf {{.*}} : tensor<128x256xf32>
// CHECK: tile.reduce add %{{.*}}, %[[SUMS]]
// CHECK-NOT: arith.mulf {{.*}} : tensor<128x256xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]]
// Those of others do.
// CHECK: arith.mulf {{.*}} : tensor<128x256xf32>
func.func @attention(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>) -> tensor<?x?x?x256xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}
