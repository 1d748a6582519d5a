// RUN: attn-opt %s --attn-to-online="target=cuda block-m=64 block-n=32 splits=2" --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s

// Parts of no keys would start where there are none.
// CHECK: remark: [Missed] split-kv | Category:attn | Remark="keys are not split: there are none"
// CHECK-LABEL: func.func @no_keys(
// CHECK-NOT: attn.merge
func.func @no_keys(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.empty(%c1, %c1, %c0) : tensor<?x?x?x64xbf16>
  %o = attn.attention %q, %k, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
