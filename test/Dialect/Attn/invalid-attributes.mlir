// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected window sides from -1 (unbounded) to 2^30, got -2 and 0}}
func.func private @window_c1() attributes {a = #attn.window<-2, 0, top_left>}

// -----

// expected-error@+1 {{expected window sides from -1 (unbounded) to 2^30, got 0 and 9223372036854775807}}
func.func private @window_c1_huge() attributes {a = #attn.window<0, 9223372036854775807, top_left>}

// -----

// expected-error@+1 {{expected a prefix length from -1 (captured lengths) to 2^30, got -2}}
func.func private @prefix_c1() attributes {a = #attn.prefix<-2, top_left>}

// -----

// expected-error@+1 {{expected a chunk size from 1 to 2^30, got 0}}
func.func private @chunked_c1() attributes {a = #attn.chunked<0, top_left>}

// -----

// expected-error@+1 {{expected an offset from -2^30 to 2^30, got -1073741825}}
func.func private @relative_bias_c1() attributes {a = #attn.relative_bias<-1073741825, top_left>}

// -----

// expected-error@+1 {{expected block_m, block_n, splits, stages and consumers from 1 to 2^30, got 0, 64, 1, 1 and 1}}
func.func private @schedule_c1() attributes {a = #attn.schedule<block_m = 0, block_n = 64>}

// -----

// expected-error@+1 {{expected block_m, block_n, splits, stages and consumers from 1 to 2^30, got 64, 64, -1, 1 and 1}}
func.func private @schedule_c1_splits() attributes {a = #attn.schedule<block_m = 64, block_n = 64, splits = -1>}

// -----

// expected-error@+1 {{from 1 to 2^30, got 64, 64, 1, 0 and 1}}
func.func private @schedule_c1_stages() attributes {a = #attn.schedule<block_m = 64, block_n = 64, stages = 0>}

// -----

// expected-error@+1 {{from 1 to 2^30, got 64, 64, 1, 1 and 0}}
func.func private @schedule_c1_consumers() attributes {a = #attn.schedule<block_m = 64, block_n = 64, consumers = 0>}

// -----

// expected-error@+1 {{expected one part of the keys and blocks that go where tiles are listed, got 2}}
func.func private @schedule_c3() attributes {a = #attn.schedule<block_m = 64, block_n = 64, splits = 2, lists = true>}

// -----

// expected-error@+1 {{where tiles are listed, got 1 and blocks that stay}}
func.func private @schedule_c3_stay() attributes {a = #attn.schedule<block_m = 64, block_n = 64, stay = true, lists = true>}

// -----

// expected-error@+1 {{expected a slack from 0 to 16, or -1 for none, got 17}}
func.func private @schedule_c4() attributes {a = #attn.schedule<block_m = 64, block_n = 64, slack = 17>}

// -----

// expected-error@+1 {{expected a slack from 0 to 16, or -1 for none, got -2}}
func.func private @schedule_c4_negative() attributes {a = #attn.schedule<block_m = 64, block_n = 64, slack = -2>}

// -----

// expected-error@+1 {{expected blocks that go where parts fill the device, got ones that stay}}
func.func private @schedule_c5() attributes {a = #attn.schedule<block_m = 64, block_n = 64, splits = 64, stay = true, fill = true>}

// -----

// expected-error@+1 {{expected a tail of at most 31 blocks behind blocks that stay, got 2 behind none}}
func.func private @schedule_c6() attributes {a = #attn.schedule<block_m = 64, block_n = 64, tail = 2>}

// -----

// expected-error@+1 {{expected a tail of at most 31 blocks behind blocks that stay, got 32}}
func.func private @schedule_c6_most() attributes {a = #attn.schedule<block_m = 64, block_n = 64, stay = true, tail = 32>}

// -----

// expected-error@+1 {{expected at most 256 columns of the query to keep, in multiples of 16, got 40}}
func.func private @schedule_c7() attributes {a = #attn.schedule<block_m = 64, block_n = 64, keep = 40>}

// -----

// expected-error@+1 {{expected up to 1024 parts where they fill the device, got 1025}}
func.func private @schedule_c9() attributes {a = #attn.schedule<block_m = 64, block_n = 64, splits = 1025, fill = true>}

// -----

// expected-error@+1 {{expected 1 to 8 blocks on a multiprocessor, or 1 that stays, got 0}}
func.func private @schedule_c8() attributes {a = #attn.schedule<block_m = 64, block_n = 64, resident = 0>}

// -----

// expected-error@+1 {{expected 1 to 8 blocks on a multiprocessor, or 1 that stays, got 2 that stay}}
func.func private @schedule_c8_stay() attributes {a = #attn.schedule<block_m = 64, block_n = 64, stay = true, resident = 2>}

// -----

// expected-error@+1 {{expected at most 256 columns of the query to keep, in multiples of 16, got -16}}
func.func private @schedule_c7_least() attributes {a = #attn.schedule<block_m = 64, block_n = 64, keep = -16>}

// -----

// expected-error@+1 {{expected a fixed_split of whole tiles of 64 keys, got 100; the nearest is 128}}
func.func private @schedule_c10() attributes {a = #attn.schedule<block_m = 64, block_n = 64, fixed_split = 100>}

// -----

// expected-error@+1 {{expected a fixed_split of whole tiles of 64 keys, got -64; the nearest is 64}}
func.func private @schedule_c10_least() attributes {a = #attn.schedule<block_m = 64, block_n = 64, fixed_split = -64>}

// -----

// expected-error@+1 {{expected a fixed_split without splits, fill, balance and lists, got 2 splits}}
func.func private @schedule_c11() attributes {a = #attn.schedule<block_m = 64, block_n = 64, splits = 2, fixed_split = 128>}

// -----

// expected-error@+1 {{expected a fixed_split without splits, fill, balance and lists, got 1 splits that fill and lists}}
func.func private @schedule_c11_lists() attributes {a = #attn.schedule<block_m = 64, block_n = 64, lists = true, fill = true, fixed_split = 128>}

// -----

// expected-error@+1 {{expected a fixed_split without splits, fill, balance and lists, got 1 splits by lengths}}
func.func private @schedule_c11_balance() attributes {a = #attn.schedule<block_m = 64, block_n = 64, balance = true, fixed_split = 128>}
