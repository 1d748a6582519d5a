// RUN: attn-opt %s --attn-to-online="target=cuda pack=8" | FileCheck %s

// The sinks of rows count once: the other parts get -inf.
// CHECK-LABEL: func.func @sink_packed(
// CHECK:         %[[SINKS:.*]] = attn.pack_sink
// CHECK:         scf.forall (%[[PART:.*]], %{{.*}}, %[[H:.*]], %[[M:.*]]) =
// CHECK:           %[[ROWS:.*]] = tensor.extract_slice %[[SINKS]][%[[H]], %[[M]]] [1, %{{.*}}] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[PART]], %c0
// CHECK:           %[[S:.*]] = arith.select %[[FIRST]], %[[ROWS]], %{{.*}} : tensor<?xf32>
// CHECK:           attn.normalize {{.*}} sink(%[[S]] : tensor<?xf32>)
// CHECK:         attn.merge
func.func @sink(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %s: tensor<?xf32>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v sink(%s : tensor<?xf32>)
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
