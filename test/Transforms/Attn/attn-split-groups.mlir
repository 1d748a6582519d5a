// RUN: attn-translate %s --target=sm_90a --way=groups --until=grid | attn-opt --attn-online-softmax --canonicalize --cse --attn-split-groups --canonicalize --cse | FileCheck %s
// RUN: attn-translate %s --target=sm_90a --way=groups --until=tile | FileCheck %s --check-prefix=TILE

// CHECK-DAG: #[[UNIT:.*]] = affine_map<()[s0] -> (s0 ceildiv 256)>
// CHECK-DAG: #[[BEGIN:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0 * ((s2 floordiv s3) ceildiv s1), s2 floordiv s3)>
// Each block has a part of the query heads and stores f32. Two blocks under a mask count as one where parts are to fill the
// device. Blocks of all heads begin with the first keys: their mapping is the slowest for tiles.
// CHECK-LABEL: func.func @gradient
// CHECK:       %[[UNITS:.*]] = affine.apply #[[UNIT]]()[%[[N:.*]]]
// CHECK:       %[[PARTS:.*]] = attn.count_parts of %[[B:.*]], %[[HKV:.*]], %[[UNITS]] keys %[[H:.*]] up_to 32
// CHECK:       %[[P:.*]] = tensor.empty(%[[PARTS]], %[[B]], %[[HKV]], %[[N]]) : tensor<?x?x?x?x64xf32>
// CHECK:       %[[SUMS:.*]]:2 = scf.forall (%[[PART:.*]], %[[I:.*]], %[[J:.*]], %[[T:.*]]) = (0, 0, 0, 0) to (%[[PARTS]], %[[B]], %[[HKV]], %[[N]]) step (1, 1, 1, 128) shared_outs(%[[OUT:.*]] = %[[P]],
// CHECK:         %[[FIRST:.*]] = affine.min #[[BEGIN]]()[%[[PART]], %[[PARTS]],
// CHECK:         %[[END:.*]] = affine.min
// CHECK:         %[[ACC:.*]]:2 = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1
// CHECK:           attn.grad_key_value_step
// CHECK:         %[[DK:.*]] = attn.grad_end %[[ACC]]#0 scale(%{{.*}}) {{.*}} -> tensor<?x64xf32>
// CHECK:         attn.grad_end %[[ACC]]#1 outs(
// CHECK:         tensor.parallel_insert_slice %[[DK]] into %[[OUT]][%[[PART]], %[[I]], %[[J]], %[[T]], 0]
// CHECK:       mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>, #gpu.block<linear_dim_3>]
// A grid for each result adds the parts in order and rounds.
// CHECK:       scf.forall (%[[I:.*]], %[[J:.*]], %[[T:.*]]) = (0, 0, 0)
// CHECK:         scf.for %[[S:.*]] = %c0 to %[[PARTS]] step %c1
// CHECK:           tensor.extract_slice %[[SUMS]]#0[%[[S]], %[[I]], %[[J]], %[[T]], 0] [1, 1, 1, %{{.*}}, 64]
// CHECK:           arith.addf
// CHECK:         attn.grad_end {{.*}} -> tensor<?x64xbf16>
// CHECK:       scf.forall
// CHECK:           tensor.extract_slice %[[SUMS]]#1[

// x: heads, y: batches, z: tiles of keys and, within each, parts.
// TILE:      func.func @gradient_key_value({{.*}}grid = {{\[\[}}#plan.extent<argument = 1, dim = 1>], [#plan.extent<argument = 1, dim = 0>], [#plan.extent<argument = 1, dim = 2, divisor = 128>, #plan.parts<
// TILE:      %[[BLOCK:.*]] = gpu.block_id z
// TILE:      arith.remui %[[BLOCK]]
// TILE:      arith.divui %[[BLOCK]]
// TILE-DAG:  gpu.block_id y
// TILE-DAG:  gpu.block_id x
// TILE:      func.func @gradient_sum(
// TILE:        scf.for
// TILE:          tile.load
// TILE:          arith.addf
// TILE:        tile.store
func.func @gradient(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %o: tensor<?x?x?x64xbf16>, %lse: tensor<?x?x?xf32>, %do: tensor<?x?x?x64xbf16>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>) {
  %dk, %dv = attn.attention_grad %q, %k, %v, %o, %lse, %do variants [#attn.causal<top_left>]
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>, tensor<?x?x?x64xbf16>
      -> d_key(tensor<?x?x?x64xbf16>) d_value(tensor<?x?x?x64xbf16>)
  return %dk, %dv : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>
}
