// A score and a mask of the user's own, a sink, and Dv that is not D.
// REQUIRES: cuda, sm_90
// RUN: attn-run %s --device=cuda --shape B=2,H=4,Hkv=2,M=300,N=400 --check | FileCheck %s
// RUN: attn-run %s --device=cuda --shape B=1,H=2,M=65,N=17 --layout=bshd --seed=3 --check | FileCheck %s

// CHECK: device {{ *}}cuda
// CHECK: verdict {{ *}}right
func.func @attention(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x96xf16>, %slopes: tensor<?xf32>,
                     %sink: tensor<?xf32>) -> tensor<?x?x?x96xf16> {
  %c255 = arith.constant 255 : index
  %unit = arith.constant 0.01 : f32
  %o = attn.attention %q, %k, %v sink(%sink : tensor<?xf32>)
    score(%s, %b, %h, %m, %n) {
      %slope = tensor.extract %slopes[%h] : tensor<?xf32>
      %distance = arith.subi %m, %n : index
      %i = arith.index_cast %distance : index to i32
      %x = arith.sitofp %i : i32 to f32
      %far = arith.mulf %x, %unit : f32
      %bias = arith.mulf %slope, %far : f32
      %t = arith.subf %s, %bias : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %low = arith.subi %m, %c255 : index
      %near = arith.cmpi sge, %n, %low : index
      %past = arith.cmpi sle, %n, %m : index
      %keep = arith.andi %near, %past : i1
      attn.yield %keep : i1
    }
    : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x96xf16> -> tensor<?x?x?x96xf16>
  return %o : tensor<?x?x?x96xf16>
}
