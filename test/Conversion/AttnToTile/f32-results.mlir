// RUN: attn-opt %s --attn-to-online="target=cuda fused=true way=long" --convert-attn-to-tile --canonicalize --cse | FileCheck %s

!x = tensor<?x?x?x64xbf16>
!w = tensor<?x?x?x64xf32>
!r = tensor<?x?x?xf32>

// Weights are rounded, and the output is stored as it is summed.
// CHECK-LABEL: func.func @output(
// CHECK:         arith.truncf %{{.*}} : tensor<192x128xf32> to tensor<192x128xbf16>
// CHECK-NOT:     truncf %{{.*}} : tensor<192x64xf32>
// CHECK:         tile.store %{{.*}} to %arg3[{{.*}}] : tensor<192x64xf32>, memref<?x?x?x64xf32,
func.func @output(%q: !x, %k: !x, %v: !x) -> !w {
  %o = attn.attention %q, %k, %v : !x, !x, !x -> !w
  return %o : !w
}

// Delta is of the wide output. Blocks of keys store sums, and what was added for queries is scaled and no more.
// CHECK-LABEL: func.func @gradients_rows(
// CHECK:         %[[O:.*]] = tile.load %arg3[{{.*}}] : memref<?x?x?x64xf32, {{.*}} -> tensor<128x64xf32>
// CHECK-NOT:     arith.extf %[[O]]
// CHECK-LABEL: func.func @gradients_key_value(
// CHECK-NOT:     truncf %{{.*}} : tensor<128x64xf32>
// CHECK:         tile.store %{{.*}} to %arg7[{{.*}}] : tensor<128x64xf32>, memref<?x?x?x64xf32,
// CHECK-NEXT:    tile.store %{{.*}} to %arg8[{{.*}}] : tensor<128x64xf32>, memref<?x?x?x64xf32,
// CHECK-LABEL: func.func @gradients_query(
// CHECK-NOT:     truncf
// CHECK:         tile.store %{{.*}} to %arg6[{{.*}}] : tensor<128x64xf32>, memref<?x?x?x64xf32,
func.func @gradients(%q: !x, %k: !x, %v: !x, %o: !w, %lse: !r, %d_o: !x) -> (!w, !w, !w) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %d_o : !x, !x, !x, !w, !r, !x -> d_query(!w) d_key(!w) d_value(!w)
  return %g#0, %g#1, %g#2 : !w, !w, !w
}
