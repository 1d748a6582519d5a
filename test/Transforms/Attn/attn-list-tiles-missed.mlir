// RUN: attn-opt %s --attn-online-softmax --attn-tile-kv-loop --canonicalize --attn-list-tiles --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s
// RUN: attn-opt %s --attn-online-softmax --attn-list-tiles --remarks-filter=attn --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=WHOLE

#lists = #attn.schedule<block_m = 64, block_n = 32, lists = true>

// CHECK: remark: [Missed] list-tiles | Category:attn | Remark="tiles are not listed: there is no mask"
// WHOLE: remark: [Missed] list-tiles | Category:attn | Remark="tiles are not listed: not in a loop made by attn-tile-kv-loop"
// CHECK: remark: [Missed] list-tiles | Category:attn | Remark="tiles are not listed: the list would depend on what only a block of the attention computes"
// CHECK-NOT: attn.list_tiles
func.func @full(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %n: index) -> tensor<2x2x128x16xf16> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #lists}
        : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}

// How many keys there are is another number in each block.
func.func @lengths(%q: tensor<2x2x128x16xf16>, %k: tensor<2x2x?x16xf16>, %ids: tensor<?xi32>) -> tensor<2x2x128x16xf16> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<2x2x128x16xf16>
  %r = scf.forall (%i, %j, %t) = (0, 0, 0) to (2, 2, 128) step (1, 1, 64) shared_outs(%o = %e) -> (tensor<2x2x128x16xf16>) {
    %qt = tensor.extract_slice %q[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<2x2x128x16xf16> to tensor<1x1x64x16xf16>
    %kt = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %t, 16] [1, 1, 1, 1] : tensor<2x2x?x16xf16> to tensor<1x1x?x16xf16>
    %ot = attn.attention %qt, %kt, %kt at(%i, %j, %t, %c0) {attn.schedule = #lists} mask(%b, %h, %m, %n) {
        %id = tensor.extract %ids[%n] : tensor<?xi32>
        %row = arith.index_cast %id : i32 to index
        %keep = arith.cmpi sle, %row, %m : index
        attn.yield %keep : i1
      } : tensor<1x1x64x16xf16>, tensor<1x1x?x16xf16>, tensor<1x1x?x16xf16> -> tensor<1x1x64x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ot into %o[%i, %j, %t, 0] [1, 1, 64, 16] [1, 1, 1, 1] : tensor<1x1x64x16xf16> into tensor<2x2x128x16xf16>
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %r : tensor<2x2x128x16xf16>
}
