// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @sink(
// CHECK-SAME: %[[SINK:[a-z0-9]+]]: tensor<?xf32>)
func.func @sink(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>) -> !t {
  // CHECK: attn.attention {{.*}} sink(%[[SINK]] : tensor<?xf32>) :
  %o = attn.attention %q, %k, %v sink(%sink : tensor<?xf32>) : !t, !t, !t -> !t
  return %o : !t
}
