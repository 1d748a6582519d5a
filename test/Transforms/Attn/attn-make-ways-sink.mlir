// RUN: attn-opt %s "--attn-make-ways=way=long slots=4" | FileCheck %s

// The sinks of a group become one for each packed row.
// CHECK-LABEL: func.func @sink_packed(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<?x8x?x64xbf16>, %[[K:[a-z0-9]*]]: tensor<?x2x?x64xbf16>, %{{[a-z0-9]*}}: tensor<?x2x?x64xbf16>, %[[S:[a-z0-9]*]]: tensor<8xf32>
// CHECK:         %[[ROWS:.*]] = attn.pack_heads %[[Q]] for %[[K]] by 4
// CHECK:         %[[SINKS:.*]] = attn.pack_sink %[[S]] of %[[Q]] for %[[K]] by 4 : {{.*}} -> tensor<2x?xf32>
// CHECK:         attn.attention %[[ROWS]], {{.*}} sink(%[[SINKS]] : tensor<2x?xf32>)
// CHECK-LABEL: func.func @sink(
// CHECK:         attn.attention {{.*}} sink(%{{.*}} : tensor<8xf32>)
func.func @sink(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %s: tensor<8xf32>) -> tensor<?x8x?x64xbf16> {
  %o = attn.attention %q, %k, %v sink(%s : tensor<8xf32>) : tensor<?x8x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}

// One that the function computes stays with its heads.
// CHECK-LABEL: func.func @computed(
// CHECK-NOT:     attn.pack
// CHECK:         return
func.func @computed(%q: tensor<?x8x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>) -> tensor<?x8x?x64xbf16> {
  %s = arith.constant dense<1.0> : tensor<8xf32>
  %o = attn.attention %q, %k, %v sink(%s : tensor<8xf32>) : tensor<?x8x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x8x?x64xbf16>
  return %o : tensor<?x8x?x64xbf16>
}
