// RUN: attn-opt %s --canonicalize | FileCheck %s

!t = tensor<?x?x?x64xbf16>


// Nothing reads the log-sum-exp: it is not computed. Regions and attributes stay.
// CHECK-LABEL: func @unused(
func.func @unused(%q: !t, %sink: tensor<?xf32>) -> !t {
  // CHECK: attn.attention {{.*}} sink({{.*}}) {note = 1 : i64}
  // CHECK: mask(
  // CHECK: -> tensor<?x?x?x64xbf16>{{$}}
  %o, %lse = attn.attention %q, %q, %q sink(%sink : tensor<?xf32>) {note = 1 : i64}
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %o : !t
}

// CHECK-LABEL: func @used(
func.func @used(%q: !t) -> tensor<?x?x?xf32> {
  // CHECK: -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
  %o, %lse = attn.attention %q, %q, %q : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %lse : tensor<?x?x?xf32>
}

// CHECK-LABEL: func @unused_low(
func.func @unused_low(%q: !t) -> tensor<?x?x?xf32> {
  // CHECK: -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>{{$}}
  %o, %lse, %low = attn.attention %q, %q, %q : !t, !t, !t -> !t, tensor<?x?x?xf32>, tensor<?x?x?xf32>
  return %lse : tensor<?x?x?xf32>
}

// The low part says nothing without the other.
// CHECK-LABEL: func @used_low(
func.func @used_low(%q: !t) -> tensor<?x?x?xf32> {
  // CHECK: -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>, tensor<?x?x?xf32>
  %o, %lse, %low = attn.attention %q, %q, %q : !t, !t, !t -> !t, tensor<?x?x?xf32>, tensor<?x?x?xf32>
  return %low : tensor<?x?x?xf32>
}
