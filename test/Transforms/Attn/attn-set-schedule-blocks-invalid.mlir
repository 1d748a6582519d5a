// A block that the machine does not have is refused before it is one, with the nearest that there is.
// RUN: attn-opt %s --attn-set-schedule=target=cuda --split-input-file --verify-diagnostics

func.func @head_dim(%q: tensor<?x?x?x33xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  // expected-error@+1 {{expected head dimensions in multiples of 8 up to 256 on sm_90a, got 33; the nearest is 40}}
  %o = attn.attention %q, %q, %v : tensor<?x?x?x33xbf16>, tensor<?x?x?x33xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

func.func @value_dim(%q: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x264xbf16>) -> tensor<?x?x?x264xbf16> {
  // expected-error@+1 {{expected head dimensions in multiples of 8 up to 256 on sm_90a, got 264; the nearest is 256}}
  %o = attn.attention %q, %q, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x264xbf16> -> tensor<?x?x?x264xbf16>
  return %o : tensor<?x?x?x264xbf16>
}

// -----

func.func @rows(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected block_m in multiples of 64 up to 256 on sm_90a, got 100; the nearest is 128}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 100, block_n = 64, consumers = 1>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

func.func @most_rows(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected block_m in multiples of 64 up to 256 on sm_90a, got 512; the nearest is 256}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 512, block_n = 64, consumers = 8>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

func.func @keys(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected block_n in multiples of 16 up to 256 with these head dimensions on sm_90a, got 20; the nearest is 32}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 20>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

func.func @most_keys(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected block_n in multiples of 16 up to 256 with these head dimensions on sm_90a, got 272; the nearest is 256}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 272>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

// A row of values takes 32 bytes: 32 of them make a stage.
func.func @short_rows(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x8xbf16>) -> tensor<?x?x?x8xbf16> {
  // expected-error@+1 {{expected block_n in multiples of 32 up to 256 with these head dimensions on sm_90a, got 112; the nearest is 128}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 112>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x8xbf16> -> tensor<?x?x?x8xbf16>
  return %o : tensor<?x?x?x8xbf16>
}

// -----

func.func @stages(%q: tensor<?x?x?x16xbf16>, %v: tensor<?x?x?x16xbf16>) -> tensor<?x?x?x16xbf16> {
  // expected-error@+1 {{expected stages in multiples of 1 up to 64 on sm_90a, got 65; the nearest is 64}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 32, stages = 65>} : tensor<?x?x?x16xbf16>, tensor<?x?x?x16xbf16>, tensor<?x?x?x16xbf16> -> tensor<?x?x?x16xbf16>
  return %o : tensor<?x?x?x16xbf16>
}

// -----

func.func @consumers(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected a consumer for each 64 of block_m 128 on sm_90a, got 1; the nearest is 2}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 128, block_n = 64>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

// Four warpgroups have 120 registers for each thread, of which 128 would be scores.
func.func @registers(%q: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  // expected-error@+1 {{expected products that fit the 112 registers of a thread in a block of 256 rows on sm_90a, got 256 columns; the nearest is block_m 192}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 256, block_n = 256, consumers = 4>} : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

func.func @shared(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected at most 232448 bytes of shared memory in a block on sm_90a, got 295048 for block_m 128, block_n 128 and stages 4; the nearest is block_n 96, or stages 3}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 4, consumers = 2>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

// One stage of fewer keys is all that helps.
func.func @shared_keys(%q: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>) -> tensor<?x?x?x256xbf16> {
  // expected-error@+1 {{got 327720 for block_m 128, block_n 256 and stages 1; the nearest is block_n 160}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 128, block_n = 256, consumers = 2>} : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}

// -----

func.func @resident_registers(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected products that fit the 24 registers of a thread in a block of 64 rows on sm_90a, got 128 columns; the nearest is resident 4}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 64, resident = 8>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

func.func @resident_shared(%q: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected at most 115712 bytes of shared memory in a block on sm_90a, got 147592 for block_m 64, block_n 64 and stages 4; the nearest is block_n 48, or stages 3}}
  %o = attn.attention %q, %q, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 64, stages = 4, resident = 2>} : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
