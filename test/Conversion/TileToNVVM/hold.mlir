// Where a kernel holds, the stage of keys is given back behind the first weight of a step, by an arrival that depends on it; the
// last one of a tile of rows, and the stage of values, as ever.
// RUN: attn-opt %s --attn-to-online="target=cuda hold=true" --online-to-tile --tile-to-async --async-to-thread | FileCheck %s --check-prefixes=CHECK,HOLD
// RUN: attn-opt %s --attn-to-online=target=cuda --online-to-tile --tile-to-async --async-to-thread | FileCheck %s --check-prefixes=CHECK,GO
// RUN: attn-opt %s --attn-to-online="target=cuda hold=true" | FileCheck %s --check-prefix=SCHEDULE

// SCHEDULE: #attn.schedule<{{.*}}, hold = true>
// The products of a step in flight, and the wait for its scores.
// CHECK: wgmma.wait_group.sync.aligned 1;
// HOLD-NOT: mbarrier.arrive
// GO: nvvm.mbarrier.arrive {{.*}} !llvm.ptr<3> -> i64
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: %[[WEIGHT:.+]] = {{.*}}llvm.nvvm.ex2.approx.ftz.f32
// HOLD-NEXT: {{.*}} llvm.mlir.constant(3 : i32)
// HOLD: llvm.inline_asm has_side_effects "{ .reg .pred behind; setp.geu.and.f32 behind, $1, 0fBF800000, $2; @behind mbarrier.arrive.shared.b64 _, [$0]; }", "l,f,b,~{memory}" %{{.+}}, %[[WEIGHT]], %{{.+}} : (!llvm.ptr<3>, f32, i1)
// GO-NOT: mbarrier.arrive
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: nvvm.mbarrier.arrive {{.*}} !llvm.ptr<3> -> i64
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
