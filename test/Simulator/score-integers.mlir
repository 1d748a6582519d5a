// Scores that count from the end, become integers and take logarithms of small numbers agree with
// f64 on every device, and so do their gradients.
// RUN: attn-run %s --device=interpreter --check --shape B=1,H=2,M=9,N=20,table.0=9 | FileCheck %s
// RUN: attn-run %s --device=cpu --check --shape B=1,H=2,M=9,N=20,table.0=9 | FileCheck %s
// RUN: attn-run %s --device=sim --sim-seeds=1 --check --shape B=1,H=2,M=9,N=20,table.0=9 | FileCheck %s
// RUN: attn-run %s --device=cpu --grad --check --shape B=1,H=2,M=9,N=20,table.0=9 | FileCheck %s
// RUN: attn-run %s --device=sim --grad --sim-seeds=1 --check --shape B=1,H=2,M=9,N=20,table.0=9 | FileCheck %s
// CHECK: verdict
// CHECK-SAME: right

func.func @integers(%q: tensor<?x?x?x16xf16>, %k: tensor<?x?x?x16xf16>, %v: tensor<?x?x?x16xf16>,
                    %table: tensor<?xf32>) -> tensor<?x?x?x16xf16> {
  %c0 = arith.constant 0 : index
  %extent = tensor.dim %table, %c0 : tensor<?xf32>
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %zero = arith.constant 0 : index
      %least = arith.constant -2147483648.0 : f32
      %most = arith.constant 2147483520.0 : f32
      %size = math.absf %s : f32
      %small = math.log1p %size : f32
      %wide = math.expm1 %small : f32
      %bounded = arith.maxnumf %wide, %least : f32
      %kept = arith.minnumf %bounded, %most : f32
      %whole = arith.fptosi %kept : f32 to i32
      %index = arith.index_cast %whole : i32 to index
      %before = arith.subi %index, %extent : index
      %below = arith.cmpi slt, %before, %zero : index
      %around = arith.addi %before, %extent : index
      %place = arith.select %below, %around, %before : index
      %bias = tensor.extract %table[%place] : tensor<?xf32>
      %sum = arith.addf %s, %bias : f32
      attn.yield %sum : f32
    }
    : tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16>, tensor<?x?x?x16xf16> -> tensor<?x?x?x16xf16>
  return %o : tensor<?x?x?x16xf16>
}
