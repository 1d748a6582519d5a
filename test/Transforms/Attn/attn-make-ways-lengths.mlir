// RUN: attn-opt %s --attn-make-ways --split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-make-ways=way=short --split-input-file | FileCheck %s --check-prefix=SHORT
// RUN: attn-opt %s --attn-make-ways=way=long --split-input-file | FileCheck %s --check-prefix=LONG
// RUN: attn-opt %s --attn-make-ways=way=few --split-input-file | FileCheck %s --check-prefix=FEW
// RUN: attn-opt %s --attn-make-ways=way=few --attn-set-schedule=target=cuda --split-input-file | FileCheck %s --check-prefix=FEW-SCHEDULE
// RUN: attn-opt %s --attn-make-ways=way=narrow --split-input-file | FileCheck %s --check-prefix=NARROW
// RUN: attn-opt %s --attn-make-ways=way=narrow --attn-set-schedule=target=cuda --split-input-file | FileCheck %s --check-prefix=NARROW-SCHEDULE
// RUN: attn-opt %s --attn-make-ways --attn-set-schedule=target=cuda --split-input-file | FileCheck %s --check-prefix=SCHEDULE

// Calls with few keys have a copy, in front, whatever their rows.
// CHECK-LABEL: func.func @full_short(
// CHECK-SAME:    plan.way = "short", plan.when = {{\[\[}}#plan.range<argument = 1, dim = 2, least = 0, most = 1024>]]
// CHECK:         attn.attention {{.*}} {attn.schedule = #attn.schedule<
// CHECK-LABEL: func.func @full(
// CHECK-NOT:     plan.when
// CHECK-NOT:     attn.schedule
// CHECK:         attn.attention
// Or all calls take its sizes, or none.
// SHORT-LABEL:  func.func @full(
// SHORT-NOT:      plan.when
// SHORT:          attn.attention {{.*}} {attn.schedule = #attn.schedule<
// LONG-LABEL:   func.func @full(
// LONG-NOT:       attn.schedule
// LONG:           attn.attention
// Or those for few rows, whatever the lengths.
// FEW-LABEL:    func.func @full(
// FEW-NOT:        plan.when
// FEW:            attn.attention {{.*}} {attn.schedule = #attn.schedule<
// FEW-SCHEDULE-LABEL: func.func @full(
// FEW-SCHEDULE:         #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2, hold = true>
// Or those for few keys.
// NARROW-LABEL:    func.func @full(
// NARROW-NOT:        plan.when
// NARROW:            attn.attention {{.*}} {attn.schedule = #attn.schedule<
// NARROW-SCHEDULE-LABEL: func.func @full(
// NARROW-SCHEDULE:         #attn.schedule<block_m = 192, block_n = 80, stages = 2, consumers = 3, stay = true>
// SCHEDULE-LABEL: func.func @full_short(
// SCHEDULE:         #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true, recompute = true, hold = true>
// SCHEDULE-LABEL: func.func @full(
// SCHEDULE:         #attn.schedule<block_m = 192, block_n = 128, stages = 2, consumers = 3>
func.func @full(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// Under a mask both rows and keys are few.
// CHECK-LABEL: func.func @masked_short(
// CHECK-SAME:    #plan.range<argument = 0, dim = 2, least = 0, most = 1024>
// CHECK-SAME:    #plan.range<argument = 1, dim = 2, least = 0, most = 1024>
// CHECK-LABEL: func.func @masked(
// Few rows have many keys: what is long, where they have no sizes of their own.
// FEW-LABEL: func.func @masked(
// FEW-NOT:     attn.schedule
// FEW:         return
// NARROW-LABEL: func.func @masked(
// NARROW-NOT:     attn.schedule
// NARROW:         return
// FEW-SCHEDULE-LABEL: func.func @masked(
// FEW-SCHEDULE:         #attn.schedule<block_m = 192, block_n = 128, stages = 2, consumers = 3, stay = true, slack = 0, apart = true>
// SCHEDULE-LABEL: func.func @masked_short(
// SCHEDULE:         #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true, hold = true>
// SCHEDULE-LABEL: func.func @masked(
// SCHEDULE:         #attn.schedule<block_m = 192, block_n = 128, stages = 2, consumers = 3, stay = true, slack = 0, apart = true>
func.func @masked(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// Few rows or few keys: either is enough.
// CHECK-LABEL: func.func @wide_short(
// CHECK-SAME:    plan.way = "short", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 2, least = 0, most = 128>], [#plan.range<argument = 1, dim = 2, least = 0, most = 2048>]]
// CHECK:         attn.attention {{.*}} {attn.schedule = #attn.schedule<
// CHECK-LABEL: func.func @wide(
// CHECK-NOT:     plan.when
// CHECK-NOT:     attn.schedule
// SHORT-LABEL: func.func @wide(
// SHORT:         attn.attention {{.*}} {attn.schedule = #attn.schedule<
// LONG-LABEL:  func.func @wide(
// LONG-NOT:      attn.schedule
// LONG:          return
// FEW-LABEL:   func.func @wide(
// FEW:           attn.attention {{.*}} {attn.schedule = #attn.schedule<
// FEW-SCHEDULE-LABEL: func.func @wide(
// FEW-SCHEDULE:         #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2, slack = 0, hold = true>
// NARROW-SCHEDULE-LABEL: func.func @wide(
// NARROW-SCHEDULE:         #attn.schedule<block_m = 192, block_n = 80, stages = 2, consumers = 3, stay = true, slack = 0>
// SCHEDULE-LABEL: func.func @wide_short(
// SCHEDULE:         #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2, stay = true, slack = 0, recompute = true>
// SCHEDULE-LABEL: func.func @wide(
// SCHEDULE:         #attn.schedule<block_m = 192, block_n = 112, stages = 2, consumers = 3, slack = 0>
func.func @wide(%q: tensor<?x?x?x96xbf16>, %k: tensor<?x?x?x96xbf16>, %v: tensor<?x?x?x96xbf16>) -> tensor<?x?x?x96xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16> -> tensor<?x?x?x96xbf16>
  return %o : tensor<?x?x?x96xbf16>
}

// -----

// One way where the rule has one.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @wide_masked(
// CHECK-NOT:   attn.schedule
// SHORT-LABEL: func.func @wide_masked(
// SHORT-NOT:     attn.schedule
// SHORT:         return
func.func @wide_masked(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

// CHECK-NOT:   _{{short|long}}
// CHECK-LABEL: func.func @wide_full(
func.func @wide_full(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}

// -----

// CHECK-NOT:   _short
// CHECK-LABEL: func.func @wider(
func.func @wider(%q: tensor<?x?x?x192xbf16>, %k: tensor<?x?x?x192xbf16>, %v: tensor<?x?x?x192xbf16>) -> tensor<?x?x?x192xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16>, tensor<?x?x?x192xbf16> -> tensor<?x?x?x192xbf16>
  return %o : tensor<?x?x?x192xbf16>
}

// -----

// A schedule that is written holds.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @scheduled(
func.func @scheduled(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>} : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// A call does not tell how many keys there are.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @made(
func.func @made(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %k, %c0 : tensor<?x?x?x64xbf16>
  %keys = tensor.empty(%b, %b, %b) : tensor<?x?x?x64xbf16>
  %o = attn.attention %q, %keys, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// Two attentions are two lengths.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @two(
func.func @two(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  %p = attn.attention %o, %k, %k : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %p : tensor<?x?x?x64xbf16>
}

// -----

// Lengths that types say decide here: all calls are short ones, and the function itself is their way.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @always(
// CHECK-NOT:     plan.when
// CHECK:         attn.attention {{.*}} {attn.schedule = #attn.schedule<
// SCHEDULE-LABEL: func.func @always(
// SCHEDULE:         stay = true
func.func @always(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x1024x64xbf16>, %v: tensor<?x?x1024x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x1024x64xbf16>, tensor<?x?x1024x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// Or none is.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @never(
// CHECK-NOT:     attn.schedule
// CHECK:         return
func.func @never(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x1025x64xbf16>, %v: tensor<?x?x1025x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x64xbf16>, tensor<?x?x1025x64xbf16>, tensor<?x?x1025x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// One of two lengths says no, but not yes.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @long_rows(
// CHECK-LABEL: func.func @short_rows_short(
// CHECK-LABEL: func.func @short_rows(
func.func @long_rows(%q: tensor<?x?x1025x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x1025x64xbf16> {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : tensor<?x?x1025x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x1025x64xbf16>
  return %o : tensor<?x?x1025x64xbf16>
}
func.func @short_rows(%q: tensor<?x?x1024x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x1024x64xbf16> {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : tensor<?x?x1024x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x1024x64xbf16>
  return %o : tensor<?x?x1024x64xbf16>
}

// -----

// Where either is enough, one of two lengths says yes, but not no.
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @few_rows(
// CHECK-NOT:     plan.when
// CHECK:         attn.attention {{.*}} {attn.schedule = #attn.schedule<
// CHECK-LABEL: func.func @few_keys(
// CHECK:         attn.attention {{.*}} {attn.schedule = #attn.schedule<
// CHECK-LABEL: func.func @many_rows_short(
// CHECK-SAME:    plan.when = {{\[\[}}#plan.range<argument = 1, dim = 2, least = 0, most = 2048>]]
// CHECK:         attn.attention {{.*}} {attn.schedule = #attn.schedule<
// CHECK-LABEL: func.func @many_rows(
// CHECK-NOT:     attn.schedule
// CHECK-NOT:   _short
// CHECK-LABEL: func.func @many(
// CHECK-NOT:     plan.when
// CHECK-NOT:     attn.schedule
// CHECK:         return
func.func @few_rows(%q: tensor<?x?x128x96xbf16>, %k: tensor<?x?x?x96xbf16>, %v: tensor<?x?x?x96xbf16>) -> tensor<?x?x128x96xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x128x96xbf16>, tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16> -> tensor<?x?x128x96xbf16>
  return %o : tensor<?x?x128x96xbf16>
}
func.func @few_keys(%q: tensor<?x?x?x96xbf16>, %k: tensor<?x?x2048x96xbf16>, %v: tensor<?x?x2048x96xbf16>) -> tensor<?x?x?x96xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x96xbf16>, tensor<?x?x2048x96xbf16>, tensor<?x?x2048x96xbf16> -> tensor<?x?x?x96xbf16>
  return %o : tensor<?x?x?x96xbf16>
}
func.func @many_rows(%q: tensor<?x?x129x96xbf16>, %k: tensor<?x?x?x96xbf16>, %v: tensor<?x?x?x96xbf16>) -> tensor<?x?x129x96xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x129x96xbf16>, tensor<?x?x?x96xbf16>, tensor<?x?x?x96xbf16> -> tensor<?x?x129x96xbf16>
  return %o : tensor<?x?x129x96xbf16>
}
func.func @many(%q: tensor<?x?x129x96xbf16>, %k: tensor<?x?x2049x96xbf16>, %v: tensor<?x?x2049x96xbf16>) -> tensor<?x?x129x96xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x129x96xbf16>, tensor<?x?x2049x96xbf16>, tensor<?x?x2049x96xbf16> -> tensor<?x?x129x96xbf16>
  return %o : tensor<?x?x129x96xbf16>
}

// -----

// At D = 256 few keys alone make a call short.
// CHECK-LABEL: func.func @widest_short(
// CHECK-SAME:    plan.way = "short", plan.when = {{\[\[}}#plan.range<argument = 1, dim = 2, least = 0, most = 768>]]
// CHECK-LABEL: func.func @widest(
// SCHEDULE-LABEL: func.func @widest_short(
// SCHEDULE:         #attn.schedule<block_m = 128, block_n = 64, stages = 2, consumers = 2, stay = true, slack = 0, recompute = true>
// SCHEDULE-LABEL: func.func @widest(
// SCHEDULE:         #attn.schedule<block_m = 128, block_n = 80, stages = 2, consumers = 2, slack = 0, keep = 96>
func.func @widest(%q: tensor<?x?x?x256xbf16>, %k: tensor<?x?x?x256xbf16>, %v: tensor<?x?x?x256xbf16>) -> tensor<?x?x?x256xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16>, tensor<?x?x?x256xbf16> -> tensor<?x?x?x256xbf16>
  return %o : tensor<?x?x?x256xbf16>
}
