//===- PlanAttrs.td - what is said about calls ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef PLAN_ATTRS_TD
#define PLAN_ATTRS_TD

include "dialects/Plan/IR/PlanDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Plan_Attr<string name, string mnemonic_, list<Trait> traits = []>
    : AttrDef<Plan_Dialect, name, traits> {
  let mnemonic = mnemonic_;
}

def Plan_TargetAttr : Plan_Attr<"Target", "target"> {
  let summary = "the machine that kernels are for, by its name in lib/Machine";
  let description = [{
    Stands on the module as `plan.target`. A module without it is for sm_90a.

    ```mlir
    module attributes {plan.target = #plan.target<"sm_90a">} {}
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name);
  let assemblyFormat = "`<` $name `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Its description; there is one, as the verifier sees to.
    const Machine &getMachine() const { return *findMachine(getName()); }
  }];
}

def Plan_ExtentAttr : Plan_Attr<"Extent", "extent"> {
  let summary = "a factor of the grid: ceil((size of dimension `dim` of an argument - `less`) * `multiplier` / "
                "`divisor`) * `unit`";
  let parameters = (ins
    "int64_t":$argument,
    "int64_t":$dim,
    DefaultValuedParameter<"int64_t", "1">:$divisor,
    DefaultValuedParameter<"int64_t", "1">:$multiplier,
    DefaultValuedParameter<"int64_t", "1">:$unit,
    DefaultValuedParameter<"int64_t", "0">:$less);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_MultiprocessorsAttr : Plan_Attr<"Multiprocessors", "multiprocessors"> {
  let summary = "a factor of the grid: `blocks` for each multiprocessor of the device";
  let description = [{
    The grid of blocks that stay and take one piece of work after the other.

    ```mlir
    #tile.kernel<warpgroups = 3, grid = [[#plan.multiprocessors<blocks = 1>]]>
    ```
  }];
  let parameters = (ins "int64_t":$blocks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_PartsAttr : Plan_Attr<"Parts", "parts"> {
  let summary = "a factor of the grid: how many parts keep the multiprocessors of the device busy";
  let description = [{
    The number of parts multiplies a grid of `blocks` (a list of factors). It is the least number
    whose last round of blocks leaves at most 1/16 of the multiprocessors idle, or else the number
    that leaves the fewest idle. It is at most `most` and at most `keys`.

    With `slots` it is the number of places for parts that sequences get by their lengths
    (attn-split-kv): for each of the sequences, which the first of `blocks` counts, one more than
    there are parts of one of average length.

    ```mlir
    #plan.parts<blocks = [#plan.extent<argument = 0, dim = 0>, #plan.extent<argument = 1, dim = 1>],
                keys = #plan.extent<argument = 1, dim = 2, divisor = 512>, most = 64>
    ```
  }];
  let parameters = (ins
    "::mlir::ArrayAttr":$blocks,
    "::mlir::Attribute":$keys,
    "int64_t":$most,
    DefaultValuedParameter<"bool", "false">:$slots);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_PackedAttr : Plan_Attr<"Packed", "packed"> {
  let summary = "an argument whose boxes see the heads that share a key head as rows";
  let description = [{
    Stands as `plan.packed` on a memref argument (B, H, M, ...). `Hkv` is dimension 1 of the
    argument `keys`, or dimension 2 if that is paged, and `g = H / Hkv` is at most `slots`.
    Positions of tile.load, tile.store and copies are positions of a view (B, Hkv, M * slots,
    ...): row `m * slots + j` of head `k` is row
    `m` of head `k * g + j`. A row with `j >= g` is outside, except that boxes may read other heads
    there. Sizes (memref.dim) are the argument's own.

    ```mlir
    func.func @decode(%q: memref<?x?x?x128xbf16> {plan.packed = #plan.packed<slots = 8, keys = 1>},
                      %k: memref<?x?x?x128xbf16>)
    ```
  }];
  let parameters = (ins "int64_t":$slots, "int64_t":$keys);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_PagedAttr : Plan_Attr<"Paged", "paged"> {
  let summary = "an argument whose boxes a table finds in pages";
  let description = [{
    Stands as `plan.paged` on a memref argument (Np, P, Hkv, D), a pool of pages of `page` = P keys. The argument
    `table` is (B, C) of i32 or i64. Positions of copies are positions of a view (B, Hkv, C * P, D): row `n` of
    batch `b` is row `n mod P` of page `table[b, n / P]`. Rows of a page that the pool does not have are zeros, and
    so are rows past C * P. Sizes (memref.dim) are the argument's own.

    ```mlir
    func.func @decode(%q: memref<?x?x?x128xbf16>,
                      %k: memref<?x64x?x128xbf16> {plan.paged = #plan.paged<table = 2, page = 64>},
                      %table: memref<?x?xi32>)
    ```
  }];
  let parameters = (ins "int64_t":$table, "int64_t":$page);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_RaggedAttr : Plan_Attr<"Ragged", "ragged"> {
  let summary = "an argument whose rows are those of sequences, one after the other";
  let description = [{
    Stands as `plan.ragged` on a memref argument (T, H, D), or (T, H) of a number for each row. The argument `offsets`
    is (B + 1) of i32 or i64, and `M` is dimension `dim` of the argument `most`. Positions of tile.load, tile.store and
    copies are positions of a view (B, H, M, D): row `m` of batch `b` is row `begin(b) + m`, and exists for
    `m < rows(b)` (s20 of the attn dialect). Loads and stores keep to rows that exist. Boxes read rows of the next
    sequences past them, and zeros past T. Sizes (memref.dim) are the argument's own.

    An argument may have `plan.packed` too: then its view has packed rows, `m * slots + j`.

    ```mlir
    func.func @prefill(%q: memref<?x?x128xbf16> {plan.ragged = #plan.ragged<offsets = 1, most = 2, dim = 0>},
                       %offsets: memref<?xi32>, %m: memref<?xi8>)
    ```
  }];
  let parameters = (ins "int64_t":$offsets, "int64_t":$most, "int64_t":$dim);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Plan_RangeAttr : Plan_Attr<"Range", "range"> {
  let summary = "a condition on a call: dimension `dim` of an argument has a size from `least` to `most`";
  let description = [{
    With `per`, the size is divided by that of another argument, rounding up: heads per key head.
    In place of an argument, the condition is on `parts`, the number of parts, or on `device`, a
    quantity of the device: "memory_rate", the GB that its memory moves in a second.

    A function whose `plan.when` lists conditions is for the calls for which all ranges of any of
    them hold. Its `plan.way` names the way of running the function that it is. Kernels in a row
    with the same `plan.way` are one way. A launch runs the first way that is for the call; the last
    one has no `plan.when` and is for all calls.

    ```mlir
    plan.when = [[#plan.range<argument = 0, dim = 2, least = 0, most = 64>],
                 [#plan.range<argument = 0, dim = 2, least = 129, most = 160>]],
    plan.way = "few"
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "-1">:$argument,
    DefaultValuedParameter<"int64_t", "-1">:$dim,
    "int64_t":$least,
    DefaultValuedParameter<"int64_t", "std::numeric_limits<int64_t>::max()">:$most,
    OptionalParameter<"::attn::plan::ExtentAttr">:$per,
    OptionalParameter<"::attn::plan::PartsAttr">:$parts,
    OptionalParameter<"::mlir::StringAttr">:$device);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // PLAN_ATTRS_TD
