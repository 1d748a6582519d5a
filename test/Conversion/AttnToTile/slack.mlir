// Where rows' maxima may lag, an accumulator is scaled in rows that take a new one only.
// RUN: attn-opt %s --attn-to-online="target=cuda way=long slack=8" --convert-attn-to-tile --canonicalize --cse | FileCheck %s
// RUN: attn-opt %s --attn-to-online="target=cuda way=long slack=0" --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefix=EXACT
// RUN: attn-opt %s --attn-to-online="target=cuda way=long slack=-1" --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefix=ALWAYS

// A factor of 2^8 is 8 / (0.125 log2(e)) = 44.36 in scores that are not scaled yet.
// CHECK-DAG:    %[[LEAST:.*]] = arith.constant 44.361{{[0-9]*}} : f32
// CHECK-DAG:    %[[UNIT:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:        %[[GROWTH:.*]] = tile.broadcast %[[LEAST]] : f32 -> tensor<192xf32>
// CHECK:        scf.for {{.*}} iter_args(%[[ACC:[^ ]*]] = {{[^,]*}}, %[[OLD:[^ ]*]] =
// CHECK:          %[[TILE:.*]] = tile.reduce max
// CHECK-NEXT:     %[[GREW:.*]] = arith.subf %[[TILE]], %[[OLD]]
// CHECK-NEXT:     %[[RAISED:.*]] = arith.cmpf ogt, %[[GREW]], %[[GROWTH]]
// CHECK-NEXT:     %[[MAX:.*]] = arith.select %[[RAISED]], %[[TILE]], %[[OLD]]
// CHECK:          %[[ONE:.*]] = tile.broadcast %[[UNIT]] : f32 -> tensor<192xf32>
// CHECK:          %[[FACTOR:.*]] = arith.select %[[RAISED]], %{{.*}}, %[[ONE]]
// CHECK:          %[[SCALED:.*]] = arith.mulf %[[ACC]]
// CHECK:          %[[ROWS:.*]] = tile.broadcast %[[RAISED]]
// CHECK:          %[[START:.*]] = arith.select %[[ROWS]], %[[SCALED]], %[[ACC]]
// CHECK:          tile.mma {{.*}}%[[START]]

// EXACT:        scf.for {{.*}} iter_args(%{{[^ ]*}} = {{[^,]*}}, %[[OLD:[^ ]*]] =
// EXACT:          %[[TILE:.*]] = tile.reduce max
// EXACT-NEXT:     arith.cmpf ogt, %[[TILE]], %[[OLD]]

// ALWAYS:       arith.maximumf
// ALWAYS-NOT:   tile.broadcast {{.*}}xi1>
func.func @f(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %q, %q : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
