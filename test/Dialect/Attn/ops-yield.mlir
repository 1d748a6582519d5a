// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// CHECK-LABEL: func @yield(
func.func @yield(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: attn.yield %{{.*}} : f32
  // CHECK: attn.yield {note = "kept"} %{{.*}} : i1
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      attn.yield %s : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi ne, %m, %n : index
      attn.yield {note = "kept"} %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
