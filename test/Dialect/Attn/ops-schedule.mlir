// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func private @one_split
// CHECK-SAME: #attn.schedule<block_m = 128, block_n = 80>
func.func private @one_split() attributes {schedule = #attn.schedule<block_m = 128, block_n = 80, splits = 1>}

// CHECK-LABEL: func private @any_order
// CHECK-SAME: #attn.schedule<block_m = 128, block_n = 80, splits = 4>
func.func private @any_order() attributes {schedule = #attn.schedule<splits = 4, block_n = 80, block_m = 128>}
