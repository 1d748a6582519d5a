// RUN: attn-opt %s --attn-to-online="block-m=64 block-n=32 splits=2" --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

// A CPU merges no rows that attn.place takes, so that keys stay whole.
// CHECK:       keys are not split: a CPU merges no rows that attn.place takes
// CHECK-LABEL: func.func @placed(
// CHECK:         scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK-NOT:     attn.merge
func.func @placed(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %a: tensor<?xi32>, %out: tensor<?x?x16xf32>) -> tensor<?x?x16xf32> {
  %o = attn.attention %q, %k, %k : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  %placed = attn.place %o[%a] into %out : tensor<?x?x?x16xf32>, tensor<?xi32> -> tensor<?x?x16xf32>
  return %placed : tensor<?x?x16xf32>
}
