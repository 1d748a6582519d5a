// Every stage computes what the problem says; a file that is already lowered runs as it is.

// RUN: attn-run %s --device=interpreter --until=grid --check --tolerance=1e-12 --shape B=2,H=4,Hkv=2,M=33,N=65 | FileCheck %s --check-prefix=GRID
// RUN: attn-run %s --device=interpreter --check --tolerance=1e-12 --shape B=2,H=4,Hkv=2,M=33,N=65 | FileCheck %s
// RUN: attn-run %s --device=interpreter --check --shape B=1,H=1,M=0,N=5 | FileCheck %s --check-prefix=EMPTY
// RUN: attn-opt %s --attn-to-online | attn-run - --device=interpreter --until=source \
// RUN:   --shape arg0.0=1,arg0.1=2,arg0.2=33,arg1.0=1,arg1.1=1,arg1.2=65,arg2.0=1,arg2.1=1,arg2.2=65,arg3.0=2,out0.0=1,out0.1=2,out0.2=33,out1.0=1,out1.1=2,out1.2=33 \
// RUN:   | FileCheck %s --check-prefix=SOURCE

// GRID: tiles 0 visited
// GRID: verdict right

// For each of 8 heads, 19 tiles have a key in m - 8 to m + 40. The sink is a denominator, not a tile.
// CHECK: o 2x4x33x24 f16 max relative {{.*}} (at most 1e-12)
// CHECK: lse 2x4x33 f32 max relative {{.*}} (at most 1e-12)
// CHECK: tiles 152 visited, 72 masked, 80 unmasked
// The last key tile is shorter than the others and has a mask even where it keeps everything.
// CHECK: waste 0 tiles keep nothing, 16 masked tiles keep everything
// CHECK: verdict right

// EMPTY: o 1x1x0x24 f16
// EMPTY: tiles 0 visited, 0 masked, 0 unmasked
// EMPTY: verdict right

// SOURCE: schedule BM=8 BN=16 splits=1
// SOURCE: tiles 38 visited, 18 masked, 20 unmasked
// SOURCE-NOT: verdict
func.func @attention(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>, %v: tensor<?x?x?x24xf16>, %sink: tensor<?xf32>)
    -> (tensor<?x?x?x24xf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.softcap<2.5>, #attn.window<40, 8, bottom_right>] sink(%sink : tensor<?xf32>)
      {attn.schedule = #attn.schedule<block_m = 8, block_n = 16>}
      : tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>, tensor<?x?x?x24xf16> -> tensor<?x?x?x24xf16>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x24xf16>, tensor<?x?x?xf32>
}
