// RUN: attn-opt %s --attn-set-schedule="target=cuda splits=8" | FileCheck %s

!d64 = tensor<?x?x?x64xbf16>

// Keys are split where rows are few: no third warpgroup for rows that are not there.
// CHECK-LABEL: func @few_rows
func.func @few_rows(%a: !d64) -> !d64 {
  // CHECK: schedule<block_m = 128, block_n = 128, splits = 8, stages = 2, consumers = 2>
  %0 = attn.attention %a, %a, %a : !d64, !d64, !d64 -> !d64
  return %0 : !d64
}
