// Blocks stay where options say so; a CPU's have no choice.
// RUN: attn-opt %s --attn-set-schedule="target=cuda stay=true" | FileCheck %s --check-prefix=STAY
// RUN: attn-opt %s --attn-set-schedule="target=cuda stay=true" --remarks-filter=attn 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attn-opt %s --attn-set-schedule="target=cuda stay=false" | FileCheck %s --check-prefix=GO
// RUN: attn-opt %s --attn-set-schedule="target=cpu stay=true" | FileCheck %s --check-prefix=GO
// RUN: not attn-opt %s --attn-set-schedule="target=cuda stay=perhaps" 2>&1 | FileCheck %s --check-prefix=WORD

// STAY: schedule<block_m = 192, block_n = 80, stages = 2, consumers = 3, stay = true, slack = 0>
// REMARK: consumers 3, blocks stay
// GO-NOT: stay =
// WORD: for the --stay option: expected stay=true, false or auto, got 'perhaps'
func.func @f(%q: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
