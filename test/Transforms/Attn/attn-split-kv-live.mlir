// RUN: attn-opt %s --attn-to-online="target=cuda pack=8" | FileCheck %s
// RUN: attn-opt %s --attn-to-online="target=cuda pack=8" --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// A part is a share of the keys below the length, but not of fewer than four tiles, unless a share of all keys is less.
// REMARK: remark: [Passed] split-kv | Category:attn | Remark="keys that the mask keeps are split over up to 64 blocks"
// CHECK-DAG:   #[[SHARE:.*]] = affine_map<()[s0, s1] -> ((s0 ceildiv (s1 * 80)) * 80)>
// CHECK-DAG:   #[[LEAST:.*]] = affine_map<()[s0, s1] -> ((s0 ceildiv (s1 * 80)) * 80, 320)>
// CHECK-DAG:   #[[BEFORE:.*]] = affine_map<()[s0, s1, s2] -> (s0 * s1, s2)>
// CHECK-DAG:   #[[KEYS:.*]] = affine_map<()[s0, s1, s2] -> (-s1 + s2, s0)>
// CHECK-LABEL: func.func @length_packed(
// CHECK:         %[[S:.*]] = attn.count_parts
// CHECK:         scf.forall (%[[PART:.*]], %[[B:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (%[[S]],
// CHECK:           %[[N:.*]] = tensor.dim
// CHECK:           tensor.extract %{{.*}}[%[[B]]]
// CHECK:           %[[END:.*]] = arith.minsi %[[N]],
// CHECK:           %[[LIVE:.*]] = arith.maxsi %[[END]], %c0
// CHECK-DAG:       %[[SIZE:.*]] = affine.apply #[[SHARE]]()[%[[LIVE]], %[[S]]]
// CHECK-DAG:       %[[FEW:.*]] = affine.min #[[LEAST]]()[%[[N]], %[[S]]]
// CHECK:           %[[L:.*]] = arith.maxsi %[[SIZE]], %[[FEW]]
// CHECK:           %[[FIRST:.*]] = affine.min #[[BEFORE]]()[%[[PART]], %[[L]], %[[LIVE]]]
// CHECK:           %[[REST:.*]] = affine.min #[[KEYS]]()[%[[L]], %[[FIRST]], %[[LIVE]]]
// CHECK:           %[[AT:.*]] = arith.minui %[[FIRST]], %[[N]]
// CHECK:           tensor.extract_slice %{{.*}}[%[[AT]], 0] [%[[REST]], 128]
func.func @length(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %lengths: tensor<?xi32>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.key_length] captures(%lengths : tensor<?xi32>)
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// Nothing is known of the keys of an undecidable mask.
// REMARK: remark: [Passed] split-kv | Category:attn | Remark="keys are split over up to 64 blocks"
func.func @undecidable(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %c3 = arith.constant 3 : index
      %c0 = arith.constant 0 : index
      %r = arith.remui %n, %c3 : index
      %keep = arith.cmpi ne, %r, %c0 : index
      attn.yield %keep : i1
    }
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
