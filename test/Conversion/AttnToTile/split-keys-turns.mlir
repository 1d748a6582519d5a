// RUN: attn-opt %s --attn-to-online="target=cuda splits=18" --convert-attn-to-tile --canonicalize --cse | FileCheck %s
// RUN: attn-opt %s --attn-to-online="target=cuda splits=17" --convert-attn-to-tile --canonicalize --cse | FileCheck %s --check-prefix=ODD

// Parts that are too many for one turn take turns of the same length. What was summed is scaled to the greatest lse so far.
// CHECK-LABEL: func.func @turns_merge
// CHECK:       %[[SUMS:.*]]:3 = scf.for %[[S:.*]] = %c0 to %c18 step %c9 iter_args(%[[MAX:.*]] = %{{.*}}, %[[TOTAL:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}}) ->
// CHECK:         %[[LAST:.*]] = arith.addi %[[S]], %c8
// CHECK-NEXT:    %[[LSE:.*]] = tile.load {{.*}}[%[[LAST]],
// CHECK-NEXT:    tile.load {{.*}}[%[[LAST]],
// CHECK-NOT:     tile.load
// CHECK:         %[[NEXT:.*]] = arith.maximumf %{{.*}}, %[[LSE]]
// CHECK:         %[[SCALE:.*]] = math.exp2
// CHECK-NEXT:    arith.mulf %[[TOTAL]], %[[SCALE]]
// CHECK-NEXT:    %[[SCALES:.*]] = tile.broadcast %[[SCALE]]
// CHECK-NEXT:    arith.mulf %[[ACC]], %[[SCALES]]
// CHECK:         scf.yield %[[NEXT]],

// The last turn has one part less: it reads the last again, as nothing.
// ODD-LABEL: func.func @turns_merge
// ODD:         scf.for %[[S:.*]] = %c0 to %c17 step %c9
// ODD:           %[[P:.*]] = arith.addi %[[S]], %c8
// ODD-NEXT:      %[[INSIDE:.*]] = arith.cmpi slt, %[[P]], %c17
// ODD-NEXT:      %[[PART:.*]] = arith.minsi %[[P]], %c16
// ODD-NEXT:      %[[LSE:.*]] = tile.load {{.*}}[%[[PART]],
// ODD-NEXT:      tile.load {{.*}}[%[[PART]],
// ODD:           %[[INSIDES:.*]] = tile.broadcast %[[INSIDE]]
// ODD:           arith.select %[[INSIDES]], %[[LSE]]
func.func @turns(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
