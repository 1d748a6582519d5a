// RUN: attn-opt %s --attn-to-online="target=cuda pack=8 balance=true" | FileCheck %s
// RUN: attn-opt %s --attn-to-online="target=cuda pack=8 balance=true" --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// Sequences get parts by their lengths. The first grid counts keys, and tiles of 80 of them, for 16 sequences a block; the
// second counts parts, and the third deals them to slots.
// REMARK: remark: [Passed] split-kv | Category:attn | Remark="keys that the mask keeps are split by the lengths of sequences"
// CHECK-LABEL: func.func @length_packed(
// CHECK:         %[[S:.*]] = attn.count_parts of %[[B:.*]], %{{.*}}, %{{.*}} keys %{{.*}} up_to 64 slots
// CHECK:         %[[COUNTS:.*]]:2 = scf.forall (%[[G:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0) to (%[[GROUPS:.*]], 1, 1) step (1, 1, 64)
// CHECK-SAME:      (tensor<?x1x1x48xi32>, tensor<?x1x1x1xi32>)
// CHECK:           %[[FIRST16:.*]] = arith.muli %[[G]], %c16
// CHECK-COUNT-16:  tensor.extract %{{.*}} : tensor<?xi32>
// CHECK:         %[[PARTS16:.*]] = scf.forall ({{.*}}) = (0, 0, 0) to (%[[GROUPS]], 1, 1) step (1, 1, 64) {{.*}} -> (tensor<?x1x1x3xi32>)
// CHECK-COUNT-2:   scf.for
// CHECK:         %[[DEAL:.*]]:2 = scf.forall (%[[SLOT:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0) to (%[[S]], 1, 1) step (1, 1, 64)
// CHECK-SAME:      (tensor<?x1x1x4xi32>, tensor<?x1x1x2xi32>)
// CHECK:           scf.for
// CHECK:           scf.if
// CHECK:             scf.for
// CHECK:           scf.if
// CHECK:             scf.for
// CHECK:           tensor.parallel_insert_slice %{{.*}}[%[[SLOT]], 0, 0, 0] [1, 1, 1, 4]
// CHECK:           tensor.parallel_insert_slice %{{.*}}[%[[SLOT]], 0, 0, 0] [1, 1, 1, 2]
// Slots start in order, with all heads of one before the next.
// CHECK:         %[[PARTS:.*]]:2 = scf.forall (%[[AT:.*]], %{{.*}}, %[[H:.*]], %[[M:.*]]) = (0, 0, 0, 0) to (%[[S]], 1,
// CHECK:           tensor.extract %[[DEAL]]#0[%[[AT]], %c0, %c0, %c2]
// CHECK:           tensor.extract %[[DEAL]]#0[%[[AT]], %c0, %c0, %c3]
// CHECK:           %[[SEQUENCE32:.*]] = tensor.extract %[[DEAL]]#0[%[[AT]], %c0, %c0, %c0]
// CHECK:           %[[SEQUENCE:.*]] = arith.index_cast %[[SEQUENCE32]]
// CHECK:           tensor.extract_slice %{{.*}}[%[[SEQUENCE]], %[[H]], %[[M]], 0]
// CHECK:           tensor.parallel_insert_slice %{{.*}}[%[[AT]], 0, %[[H]], %[[M]], 0]
// CHECK:         mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>, #gpu.block<linear_dim_3>]
// A merge joins the slots of its sequence.
// CHECK:         scf.forall (%[[J2:.*]], %[[H2:.*]], %[[M2:.*]]) = (0, 0, 0) to (%[[B]],
// CHECK:           tensor.extract %[[DEAL]]#1[%[[J2]], %c0, %c0, %c0]
// CHECK:           %[[FIRST:.*]] = arith.minui
// CHECK:           %[[COUNT:.*]] = arith.minui
// CHECK:           tensor.extract_slice %[[PARTS]]#0[%[[FIRST]], 0, %[[H2]], %[[M2]], 0] [%[[COUNT]], 1, 1,
// CHECK:           attn.merge
func.func @length(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %lengths: tensor<?xi32>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.key_length] captures(%lengths : tensor<?xi32>)
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// Without lengths all sequences have as many keys.
// REMARK: remark: [Missed] split-kv | Category:attn | Remark="sequences have as many parts: no mask bounds the keys of a sequence"
// REMARK: remark: [Passed] split-kv | Category:attn | Remark="keys are split over up to 64 blocks"
func.func @none(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// A window from the end of all keys is the same for all sequences.
// REMARK: Remark="sequences have as many parts: all sequences have the same keys"
func.func @window(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>] : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// Heads with lengths of their own are rows of one tile.
// REMARK: Remark="sequences have as many parts: no mask bounds the keys of a sequence"
func.func @heads(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %lengths: tensor<?x?xi32>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %length = tensor.extract %lengths[%b, %h] : tensor<?x?xi32>
      %l = arith.index_cast %length : i32 to index
      %keep = arith.cmpi slt, %n, %l : index
      attn.yield %keep : i1
    }
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
