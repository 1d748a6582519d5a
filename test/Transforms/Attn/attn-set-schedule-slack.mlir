// How far maxima may lag is said by options; a CPU's never do.
// RUN: attn-opt %s --attn-set-schedule="target=cuda slack=8" | FileCheck %s
// RUN: attn-opt %s --attn-set-schedule="target=cuda slack=0" | FileCheck %s --check-prefix=EXACT
// RUN: attn-opt %s --attn-set-schedule="target=cuda slack=-1" | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %s --attn-set-schedule="target=cpu slack=8" | FileCheck %s --check-prefix=NONE
// RUN: not attn-opt %s --attn-set-schedule="target=cuda slack=17" 2>&1 | FileCheck %s --check-prefix=MOST

// CHECK: schedule<{{.*}}, slack = 8>
// EXACT: schedule<{{.*}}, slack = 0>
// NONE-NOT: slack =
// MOST: error: {{.*}} expected a slack from 0 to 16, or -1 for none, got 17
func.func @f(%q: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
