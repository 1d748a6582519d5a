// RUN: attn-opt %s --attn-to-online="target=cuda pack=8 fixed-split=4096" | FileCheck %s
// RUN: attn-opt %s --attn-to-online="target=cuda pack=8 fixed-split=4096" --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// Parts begin at multiples of 4096 from key 0, wherever the mask begins and ends. There are as many as the cache has room
// for. Decoding and other calls have the same keys of a step, which divide a part.
// REMARK: rule cuda-decode chose block_m 64, block_n 64, splits 1, stages 2, consumers 1, parts of 4096 keys, 2 blocks on a multiprocessor, for the way packed
// REMARK: rule cuda-d128 chose block_m 128, block_n 64, splits 1, stages 2, consumers 2, parts of 4096 keys
// REMARK: remark: [Passed] split-kv | Category:attn | Remark="keys are split into parts of 4096"
// CHECK-DAG:   #[[PARTS:.*]] = affine_map<()[s0] -> (s0 ceildiv 4096)>
// CHECK-DAG:   #[[FIRST:.*]] = affine_map<()[s0, s1] -> (s1, s0 * 4096)>
// CHECK-DAG:   #[[KEYS:.*]] = affine_map<()[s0, s1] -> (-s0 + s1, 4096)>
// CHECK-LABEL: func.func @length_packed(
// CHECK-NOT:     attn.count_parts
// CHECK:         %[[N:.*]] = tensor.dim %arg1, %c2
// CHECK:         %[[S:.*]] = affine.apply #[[PARTS]]()[%[[N]]]
// CHECK:         scf.forall (%[[PART:.*]], %[[B:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (%[[S]],
// CHECK:           %[[ALL:.*]] = tensor.dim
// CHECK:           %[[BEGIN:.*]] = affine.min #[[FIRST]]()[%[[PART]], %[[ALL]]]
// CHECK:           %[[SIZE:.*]] = affine.min #[[KEYS]]()[%[[BEGIN]], %[[ALL]]]
// CHECK:           tensor.extract_slice %{{.*}}[%[[BEGIN]], 0] [%[[SIZE]], 128]
// CHECK:           attn.online_attention {{.*}} at({{.*}}, %[[BEGIN]])
// CHECK:         attn.merge {{.*}} {attn.schedule = #attn.schedule<{{.*}}fixed_split = 4096>}
func.func @length(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %lengths: tensor<?xi32>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.key_length] captures(%lengths : tensor<?xi32>)
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
