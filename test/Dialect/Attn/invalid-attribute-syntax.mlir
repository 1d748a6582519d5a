// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{expected one of [top_left, bottom_right] for which corner the diagonal m == n goes through, got: middle}}
// expected-error@+1 {{failed to parse Attn_CausalAttr parameter}}
func.func private @alignment() attributes {a = #attn.causal<middle>}

// -----

// expected-error@+1 {{expected block_m, block_n, splits, stages and consumers from 1 to 2^30, got 64, 0, 1, 1 and 1}}
func.func private @missing_block_n() attributes {a = #attn.schedule<block_m = 64>}

// -----

// expected-error@+2 {{expected a variant, got 'diagonal'}}
// expected-note@+1 {{variants are causal, window, prefix, chunked}}
func.func private @unknown_attribute() attributes {a = #attn.diagonal}

// -----

// expected-error@+2 {{invalid kind of attribute specified}}
// expected-error@+1 {{failed to parse Attn_SoftcapAttr parameter 'cap'}}
func.func private @softcap_of_integer() attributes {a = #attn.softcap<30>}

// -----

// expected-error@+2 {{expected a word of a schedule, got 'blocks'}}
// expected-error@+1 {{failed to parse Attn_ScheduleAttr parameter 'words'}}
func.func private @unknown_word() attributes {a = #attn.schedule<block_m = 64, block_n = 64, blocks = 2>}

// -----

// expected-error@+2 {{expected 'stages' once, got it twice}}
// expected-error@+1 {{failed to parse Attn_ScheduleAttr parameter 'words'}}
func.func private @word_twice() attributes {a = #attn.schedule<block_m = 64, block_n = 64, stages = 2, stages = 3>}
