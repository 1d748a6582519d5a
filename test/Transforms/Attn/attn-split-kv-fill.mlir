// RUN: attn-opt %s --attn-to-online="target=cuda pack=8" | FileCheck %s
// RUN: attn-opt %s --attn-to-online=target=cpu | FileCheck %s --check-prefix=CPU

// Packed rows fill a device with parts: as many as it says, of at least four tiles of keys.
// CHECK-DAG:   #[[TILES:.*]] = affine_map<()[s0] -> (s0 ceildiv 64)>
// CHECK-DAG:   #[[MOST:.*]] = affine_map<()[s0] -> (s0 ceildiv 320)>
// CHECK-DAG:   #[[BEGIN:.*]] = affine_map<()[s0, s1, s2] -> (s0 * ((s1 ceildiv (s2 * 80)) * 80), s1)>
// CHECK-LABEL: func.func @attention_packed(
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<?x?x?x128xbf16>, %[[K:[a-z0-9]*]]: tensor<?x?x?x128xbf16>
// CHECK:         %[[ROWS:.*]] = attn.pack_heads %[[Q]] for %[[K]] by 8
// CHECK-DAG:     %[[B:.*]] = tensor.dim %[[ROWS]], %c0 :
// CHECK-DAG:     %[[H:.*]] = tensor.dim %[[ROWS]], %c1 :
// CHECK-DAG:     %[[M:.*]] = tensor.dim %[[ROWS]], %c2 :
// CHECK-DAG:     %[[N:.*]] = tensor.dim %[[K]], %c2 :
// CHECK-DAG:     %[[T:.*]] = affine.apply #[[TILES]]()[%[[M]]]
// CHECK-DAG:     %[[L:.*]] = affine.apply #[[MOST]]()[%[[N]]]
// CHECK:         %[[S:.*]] = attn.count_parts of %[[B]], %[[H]], %[[T]] keys %[[L]] up_to 64
// CHECK:         tensor.empty(%[[S]], %[[B]], %[[H]], %[[M]])
// CHECK:         scf.forall (%[[PART:.*]], %{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (%[[S]], %[[B]], %[[H]], %[[M]]) step (1, 1, 1, 64)
// CHECK:           affine.min #[[BEGIN]]()[%[[PART]], %{{.*}}, %[[S]]]
// A merge has the rows that four warps have whose lanes lie along 128 columns.
// CHECK:         scf.forall ({{.*}}) to (%[[B]], %[[H]], %[[M]]) step (1, 1, 4)
// CHECK:         attn.merge
// A device without multiprocessors packs nothing.
// CPU-NOT:     attn.pack_heads
// CPU-NOT:     attn.count_parts
func.func @attention(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
