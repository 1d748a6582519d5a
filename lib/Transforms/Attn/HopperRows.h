//===- HopperRows.h - measured schedules for Hopper -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The tables that ScheduleRule.cpp searches. The remark of attn-set-schedule names the row that
// decided, so that each row has a name of its own.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_HOPPERROWS_H
#define ATTN_LIB_TRANSFORMS_ATTN_HOPPERROWS_H

#include "lib/Transforms/Attn/Policy.h"

namespace attn::hopper {

/// Whose rows these are.
inline constexpr llvm::StringLiteral kMachine = "sm_90a";

/// The first row that holds decides. A warpgroup for each 64 rows. Keys so that the query, two
/// stages of keys and two of values fit 227 KiB, and scores, weights, accumulator and what the
/// regions compute fit the registers: 240 in each thread of two warpgroups, 160 of three. Measured
/// on an H200 (bench/NOTES.md); where a mask cuts tiles, narrow ones waste less. Keys are split
/// where rows are few: three warpgroups would mostly compute rows that do not exist.
inline constexpr Row kRows[] = {
    {.rule = "cuda-d80-factors",
     .columns = 80,
     .any = Factors,
     .schedule = {.blockM = 128, .blockN = 96},
     .mostWork = 17},
    {.rule = "cuda-d192-factors",
     .columns = 192,
     .any = Factors,
     .schedule = {.blockM = 128, .blockN = 80},
     .mostWork = 17},
    {.rule = "cuda-d256-factors",
     .columns = 256,
     .any = Factors,
     .schedule = {.blockM = 128, .blockN = 64},
     .mostWork = 15},
    {.rule = "cuda-d64-long",
     .columns = 64,
     .any = Long,
     .none = Gathers | Split,
     .schedule = {.blockM = 192, .blockN = 96, .apart = true},
     .mostWork = 9},
    {.rule = "cuda-d64-bias",
     .columns = 64,
     .any = BiasUnderMask,
     .none = Gathers | Split,
     .schedule = {.blockM = 192, .blockN = 112, .apart = true},
     .mostWork = 9},
    {.rule = "cuda-d64-window",
     .columns = 64,
     .any = Window,
     .none = Split,
     .schedule = {.blockM = 128, .blockN = 128},
     .mostWork = 4,
     .mostStaying = 4},
    {.rule = "cuda-d64-mask",
     .columns = 64,
     .any = Masked,
     .none = Gathers | Split | RowTables,
     .schedule = {.blockM = 192, .blockN = 128, .slack = 0, .apart = true},
     .mostWork = 9,
     .mostStaying = 1},
    {.rule = "cuda-d64",
     .columns = 64,
     .none = Gathers | Split | RowTables,
     .schedule = {.blockM = 192, .blockN = 128},
     .mostWork = 9},
    {.rule = "cuda-d96",
     .columns = 96,
     .any = Plain,
     .none = Split,
     .schedule = {.blockM = 192, .blockN = 112, .slack = 0}},
    {.rule = "cuda-d128-plain",
     .columns = 128,
     .any = Plain,
     .none = Split,
     .schedule = {.blockM = 192, .blockN = 80, .slack = 0}},
    {.rule = "cuda-d128-edge",
     .columns = 128,
     .any = Edge,
     .none = Gathers | Long | Split,
     .schedule = {.blockM = 128, .blockN = 128, .slack = 0, .hold = true},
     .mostWork = 17,
     .mostStaying = 1},
    {.rule = "cuda-d128-long",
     .columns = 128,
     .any = Long,
     .schedule = {.blockM = 128, .blockN = 112},
     .mostWork = 17},
    {.rule = "cuda-d128-bias",
     .columns = 128,
     .any = BiasUnderMask,
     .none = Long | Split,
     .schedule = {.blockM = 128, .blockN = 128, .tail = 2, .recompute = true},
     .mostWork = 17,
     .mostStaying = 5,
     .mostBiased = 13},
    {.rule = "cuda-d128",
     .columns = 128,
     .schedule = {.blockM = 128, .blockN = 128, .hold = true},
     .mostWork = 17,
     .mostStaying = 5},
    {.rule = "cuda-d192-edge-narrow",
     .columns = 192,
     .any = Edge,
     .none = Gathers | Long | Split | WideValues | RowTables,
     .schedule = {.blockM = 128, .blockN = 128, .slack = 0, .tail = 1, .hold = true},
     .mostWork = 9,
     .mostStaying = 1},
    {.rule = "cuda-d192-edge",
     .columns = 192,
     .any = Edge,
     .none = Gathers | Long | Split | RowTables,
     .schedule = {.blockM = 128, .blockN = 112, .slack = 0, .tail = 2, .hold = true},
     .mostWork = 9,
     .mostStaying = 1},
    {.rule = "cuda-d192-plain-narrow",
     .columns = 192,
     .any = Plain,
     .none = Split | WideValues,
     .schedule = {.blockM = 128, .blockN = 128, .slack = 0, .hold = true, .keep = 128}},
    {.rule = "cuda-d192-plain",
     .columns = 192,
     .any = Plain,
     .none = Split,
     .schedule = {.blockM = 128, .blockN = 96, .slack = 0, .hold = true}},
    {.rule = "cuda-d192-long",
     .columns = 192,
     .any = Long | Gathers,
     .schedule = {.blockM = 128, .blockN = 64},
     .mostWork = 21},
    {.rule = "cuda-d192", .columns = 192, .schedule = {.blockM = 128, .blockN = 96}, .mostWork = 9},
    {.rule = "cuda-d256-long",
     .columns = 256,
     .any = Long | Gathers,
     .schedule = {.blockM = 128, .blockN = 48},
     .mostWork = 21},
    {.rule = "cuda-d256-edge",
     .columns = 256,
     .any = Edge,
     .none = Gathers | Long | Split | RowTables,
     .schedule =
         {.blockM = 128, .blockN = 64, .slack = 0, .tail = 2, .recompute = true, .keep = 48},
     .mostWork = 7,
     .mostStaying = 1},
    {.rule = "cuda-d256-plain",
     .columns = 256,
     .any = Plain,
     .none = Split,
     .schedule = {.blockM = 128, .blockN = 80, .slack = 0, .keep = 96}},
    {.rule = "cuda-d256-tables",
     .columns = 256,
     .any = RowTables,
     .schedule = {.blockM = 128, .blockN = 64, .slack = 0},
     .mostWork = 7},
    {.rule = "cuda-d256-mask",
     .columns = 256,
     .any = Masked,
     .schedule = {.blockM = 128, .blockN = 64, .slack = 0},
     .mostWork = 7,
     .mostStaying = 1},
    {.rule = "cuda-d256",
     .columns = 256,
     .schedule = {.blockM = 128, .blockN = 80},
     .mostWork = 15}};

/// Where a block has few tiles, how it starts and ends counts, and a block that stays hides both;
/// under a mask 128 rows waste less than 192. Measured against the other table
/// (bench/results/gpu-short.json). A window has such tiles at all lengths. 128 rows would leave a
/// third of a tile of 192 empty, whatever their keys. At D = 97 to 192 blocks that hold are as
/// fast at all lengths, and one kernel is assembled where there were two. At D = 64 they are faster
/// up to 1024 keys, of whose rows tiles of 192 leave up to an eighth empty. Rows with more regions,
/// factors or gathers are not: they spill where blocks stay, or were not measured. A stage is held
/// under masks at D = 64 as well (1.01 and 1.02 at 512 and 1024). At D = 256
/// blocks that stay without a mask spill unless they recompute.
inline constexpr unsigned kOneWay = BiasUnderMask | Gathers | Long | Split | Factors | Window;
inline constexpr LengthRow kLengthRows[] = {
    {.row = {.rule = "cuda-d48-mask-short",
             .columns = 48,
             .any = Masked,
             .none = kOneWay,
             .schedule = {.blockM = 128, .blockN = 128, .stay = true},
             .mostWork = 4},
     .mostRows = 2048,
     .mostKeys = 2048},
    {.row = {.rule = "cuda-d64-mask-short",
             .columns = 64,
             .any = Masked,
             .none = kOneWay,
             .schedule = {.blockM = 128, .blockN = 128, .stay = true, .hold = true},
             .mostWork = 4},
     .mostRows = 1024,
     .mostKeys = 1024},
    {.row = {.rule = "cuda-d48-short",
             .columns = 48,
             .any = Plain,
             .none = Long | Split,
             .schedule = {.blockM = 192, .blockN = 128, .stay = true}},
     .mostKeys = 2048},
    {.row = {.rule = "cuda-d64-short",
             .columns = 64,
             .any = Plain,
             .none = Long | Split,
             .schedule =
                 {.blockM = 128, .blockN = 128, .stay = true, .recompute = true, .hold = true}},
     .mostKeys = 1024},
    {.row =
         {.rule = "cuda-d96-short",
          .columns = 96,
          .any = Plain,
          .none = Long | Split,
          .schedule = {.blockM = 128, .blockN = 128, .stay = true, .slack = 0, .recompute = true}},
     .mostRows = 128,
     .mostKeys = 2048,
     .either = true},
    {.row = {.rule = "cuda-d128-full",
             .columns = 128,
             .any = Plain,
             .none = Long | Split,
             .schedule = {.blockM = 128,
                          .blockN = 128,
                          .stay = true,
                          .slack = 0,
                          .recompute = true,
                          .hold = true}}},
    {.leastColumns = 129,
     .row = {.rule = "cuda-d192-narrow-full",
             .columns = 192,
             .any = Plain,
             .none = Long | Split | WideValues,
             .schedule = {.blockM = 128,
                          .blockN = 128,
                          .stay = true,
                          .slack = 0,
                          .hold = true,
                          .keep = 64}}},
    {.leastColumns = 129,
     .row = {.rule = "cuda-d192-full",
             .columns = 192,
             .any = Plain,
             .none = Long | Split,
             .schedule = {.blockM = 128,
                          .blockN = 96,
                          .stay = true,
                          .slack = 0,
                          .recompute = true,
                          .hold = true,
                          .keep = 48}}},
    {.leastColumns = 193,
     .row = {.rule = "cuda-d256-short",
             .columns = 256,
             .any = Plain,
             .none = Long | Split,
             .schedule =
                 {.blockM = 128, .blockN = 64, .stay = true, .slack = 0, .recompute = true}},
     .mostKeys = 768}};

/// 128 rows are one tile of 128, of which tiles of 192 would leave a third empty, and memory counts
/// as products do. Measured with 16384 keys (bench/NOTES.md). They are no rows of the other
/// tables, since each kernel more is one that every first call would assemble.
inline constexpr Row kFewRows[] = {
    {.rule = "cuda-d64-few",
     .columns = 64,
     .any = Plain,
     .none = Long | Split,
     .schedule = {.blockM = 128, .blockN = 128, .hold = true}},
    {.rule = "cuda-d128-few",
     .columns = 128,
     .any = Plain,
     .none = Long | Split,
     .schedule = {.blockM = 128, .blockN = 128, .slack = 0, .hold = true}}};

/// Up to 80 keys, those of a caption, are one tile of 80. Wider tiles would multiply keys that do
/// not exist. So many blocks with so little work each depend on how they begin and end.
/// Up to 160 are two of them. Measured with 77 and 154 keys (bench/NOTES.md).
inline constexpr Row kNarrowRows[] = {
    {.rule = "cuda-d64-narrow",
     .columns = 64,
     .any = Plain,
     .none = Long | Split,
     .schedule = {.blockM = 192, .blockN = 80, .stay = true}},
    {.rule = "cuda-d128-narrow",
     .columns = 128,
     .any = Plain,
     .none = Long | Split,
     .schedule = {.blockM = 192, .blockN = 80, .stay = true, .slack = 0}},
    {.rule = "cuda-d256-narrow",
     .columns = 256,
     .any = Plain,
     .none = Long | Split,
     .schedule = {.blockM = 128, .blockN = 80, .stay = true, .slack = 0, .recompute = true}}};

/// Elements of 8 bits, of whose values a stage lies in memory twice. Estimates, which nobody has
/// measured: a prototype of the first reached 833 TFLOP/s. Three warpgroups of registers would
/// leave 136 for each thread.
inline constexpr Row kByteRows[] = {{.rule = "cuda-d128-bytes",
                                     .columns = 128,
                                     .none = Long | Split,
                                     .schedule = {.blockM = 128, .blockN = 128, .slack = 0},
                                     .mostWork = 4},
                                    {.rule = "cuda-d256-bytes",
                                     .columns = 256,
                                     .schedule = {.blockM = 128, .blockN = 64, .slack = 0},
                                     .mostWork = 17}};

/// Few rows are one tile of 128. Calls of few keys have more rows than two tiles of 128, since one
/// of 192 would leave a third empty. They need an H200's 4800 GB/s: an H100, of 3350 GB/s, waits
/// for memory where keys are few (0.92 times as fast there).
inline constexpr WayBounds kWayBounds = {.decodedKeys = 1024,
                                         .mostFewRows = 128,
                                         .mostShortKeys = 2048,
                                         .narrowKeys = 80,
                                         .wideKeys = 128,
                                         .leastNarrowRows = 257,
                                         .leastNarrowRate = 4000};

inline constexpr Policy kPolicy = {.rows = kRows,
                                   .lengthRows = kLengthRows,
                                   .fewRows = kFewRows,
                                   .narrowRows = kNarrowRows,
                                   .byteRows = kByteRows,
                                   .ways = kWayBounds,
                                   .stages = 2};

} // namespace attn::hopper

#endif // ATTN_LIB_TRANSFORMS_ATTN_HOPPERROWS_H
