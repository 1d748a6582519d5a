// RUN: attn-opt %s --attn-set-schedule="target=cuda" | FileCheck %s
// RUN: attn-opt %s --attn-set-schedule="target=cuda keep=48" | FileCheck %s --check-prefix=GIVEN
// RUN: attn-opt %s --attn-set-schedule="target=cuda keep=0" | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %s --attn-set-schedule="target=cuda stay=true" | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %s --attn-set-schedule="target=cuda block-n=64" | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %s --attn-set-schedule="target=cpu keep=48" | FileCheck %s --check-prefix=NONE
// RUN: not attn-opt %s --attn-set-schedule="target=cuda keep=40" 2>&1 | FileCheck %s --check-prefix=INVALID

// Consumers keep the columns that the rule's own sizes leave registers for.
// CHECK: block_n = 80, {{.*}}keep = 96>
// GIVEN: keep = 48>
// NONE-NOT: keep
// INVALID: expected at most 256 columns of the query to keep, in multiples of 16, got 40
func.func @wide(%q: tensor<?x?x?x256xbf16>) -> tensor<?x?x?x256xbf16> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}
