//===- LayoutTest.cpp - every element has the owner the hardware gives it ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/Layout.h"
#include "lib/Machine/Lanes.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <array>
#include <map>

using namespace attn;
using namespace attn::tile;

static constexpr Product makeProduct(int64_t threads, int64_t rows) {
  return {.name = "a test's",
          .form = Product::Form::Shared,
          .threads = threads,
          .rows = rows,
          .steps = 1,
          .columnStep = 8,
          .columns = 256,
          .sumBytes = 32,
          .registers = 16,
          .isAsync = true};
}
static constexpr Product kWarpgroup = makeProduct(128, 64), kHalf = makeProduct(64, 32),
                         kWarp = makeProduct(32, 16), kTallWarp = makeProduct(32, 32);

/// Every (warp, lane, register) owns an element, every element has the same number of owners,
/// getOwner names the first.
static void expectConsistent(const Layout &layout, int64_t replicas) {
  std::map<std::pair<int64_t, int64_t>, int64_t> owners;
  for (int64_t warp = 0; warp < layout.getNumWarps(); ++warp)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t reg = 0; reg < layout.getNumRegisters(); ++reg) {
        Position position = layout.getPosition({warp, lane, reg});
        ASSERT_GE(position.row, 0);
        ASSERT_LT(position.row, layout.getNumRows());
        ASSERT_GE(position.column, 0);
        ASSERT_LT(position.column, layout.getNumColumns());
        ++owners[{position.row, position.column}];
        Owner first = layout.getOwner(position);
        EXPECT_EQ(layout.getPosition(first), position);
        EXPECT_EQ(first == (Owner{warp, lane, reg}), layout.isFirstReplica(lane));
      }
  EXPECT_EQ(int64_t(owners.size()), layout.getNumRows() * layout.getNumColumns());
  for (const auto &[position, count] : owners)
    EXPECT_EQ(count, replicas);
}

TEST(Layout, EveryElementIsOwned) {
  for (const Product &product : {kWarpgroup, kHalf, kWarp, kTallWarp})
    for (int64_t units : {1, 2, 3})
      for (int64_t steps : {1, 2})
        for (int64_t columns : {8, 64, 80, 96, 112, 128, 144, 176, 192, 256}) {
          int64_t rows = product.rows * units * steps;
          expectConsistent(Layout::accumulator(product, units, rows, columns), 1);
          if (columns % 16 == 0)
            expectConsistent(Layout::operandA(product, units, 16, rows, columns), 1);
          if (columns % 32 == 0)
            expectConsistent(Layout::operandA(product, units, 8, rows, columns), 1);
          if (columns % 32 == 0)
            expectConsistent(Layout::operandAInQuads(product, units, rows, columns), 1);
          expectConsistent(Layout::row(product, units, rows), 4);
          expectConsistent(Layout::quad(product, units, rows), 1);
          if (columns % 32 == 0)
            expectConsistent(Layout::chunked(product, units, rows, columns), 1);
        }
  expectConsistent(Layout::blocked(8, 16, 8, 128, 128), 1);
  expectConsistent(Layout::blocked(4, 8, 4, 64, 96), 1);
  expectConsistent(Layout::blocked(4, 32, 4, 4, 256), 1);
  expectConsistent(Layout::rowOfBlocks(8, 4, 64), 8);
  expectConsistent(Layout::rowOfBlocks(32, 4, 4), 32);
  expectConsistent(Layout::rowOfBlocks(1, 8, 256), 1);
}

/// Of K in quads a thread has what it has of an accumulator: pairs of it, in another order. Without
/// quads it has not.
TEST(Layout, QuadsStayWithTheirThreads) {
  for (int64_t columns : {32, 96, 128}) {
    Layout from = Layout::accumulator(kWarpgroup, 2, 128, columns),
           to = Layout::operandAInQuads(kWarpgroup, 2, 128, columns);
    llvm::SmallVector<int64_t> registers = findRegisters(from, to);
    ASSERT_EQ(int64_t(registers.size()), to.getNumRegisters());
    for (int64_t warp : {0, 3, 7})
      for (int64_t lane = 0; lane < 32; ++lane)
        for (auto [reg, source] : llvm::enumerate(registers))
          EXPECT_EQ(to.getPosition({warp, lane, int64_t(reg)}),
                    from.getPosition({warp, lane, source}));
    for (size_t reg = 0; reg < registers.size(); reg += 2) {
      EXPECT_EQ(registers[reg] % 2, 0);
      EXPECT_EQ(registers[reg + 1], registers[reg] + 1);
    }
    EXPECT_FALSE(isSameMap(from, to));
    EXPECT_TRUE(findRegisters(from, Layout::operandA(kWarpgroup, 2, 8, 128, columns)).empty());
  }
}

/// What a lane has of the rows is the same in a tile and in its row vector.
TEST(Layout, RowsOfBlocksAreTheBlocks) {
  for (int64_t lanes : {1, 4, 32}) {
    int64_t rows = 32 / lanes * 4 * 3;
    Layout blocks = Layout::blocked(2, lanes, 4, rows, 6 * lanes);
    Layout row = Layout::rowOfBlocks(lanes, 4, rows);
    for (int64_t warp = 0; warp < 4; ++warp)
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t reg = 0; reg < row.getNumRegisters(); ++reg)
          EXPECT_EQ(blocks.getPosition({warp, lane, 6 * reg}).row,
                    row.getPosition({warp, lane, reg}).row);
  }
}

/// A thread has a row of a sum in tensor memory, all columns of it.
TEST(Layout, RowsInLanes) {
  const attn::Product &product = *attn::findProduct("tcgen05");
  for (int64_t units : {1, 2}) {
    // Twice a product's rows, as kernels without products have them.
    int64_t rows = 256 * units, columns = 48;
    Layout tile = Layout::accumulator(product, units, rows, columns);
    EXPECT_EQ(tile.getNumWarps(), 4 * units);
    EXPECT_EQ(tile.getNumRegisters(), 2 * columns);
    EXPECT_EQ(tile.getPosition({4 * units - 1, 31, 2 * columns - 1}),
              (Position{rows - 1, columns - 1}));
    EXPECT_EQ(tile.getPosition({1, 3, 5}), (Position{35, 5}));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        ASSERT_EQ(tile.getPosition(tile.getOwner({row, column})), (Position{row, column}));
    EXPECT_TRUE(isSameMap(tile, Layout::operandA(product, units, 16, rows, columns)));
    EXPECT_TRUE(isSameMap(Layout::accumulator(product, units, rows, 64),
                          Layout::chunked(product, units, rows, 64)));
    EXPECT_EQ(Layout::row(product, units, rows).getNumRegisters(), 2);
    EXPECT_EQ(Layout::quad(product, units, rows).getNumRegisters(), 8);
  }
}

/// Lanes side by side access whole sectors, and fill the columns.
TEST(Layout, LanesAlongRows) {
  auto get = [](int64_t columns) {
    auto [vector, lanes, rows] = attn::getLanesAlongRows(columns, /*warps=*/4);
    return std::array<int64_t, 3>{vector, lanes, rows};
  };
  using Lanes = std::array<int64_t, 3>;
  EXPECT_EQ(get(64), (Lanes{4, 16, 8}));
  EXPECT_EQ(get(128), (Lanes{4, 32, 4}));
  EXPECT_EQ(get(256), (Lanes{4, 32, 4}));
  EXPECT_EQ(get(80), (Lanes{4, 4, 32}));
  EXPECT_EQ(get(40), (Lanes{2, 4, 32}));
  EXPECT_EQ(get(7), (Lanes{1, 1, 128}));
}

/// The manual's words: warp w, lane l: rows 16w + l/4 + {0, 8}, columns 8v + 2(l mod 4) + {0, 1};
/// register 4v + 2h + i.
TEST(Layout, AccumulatorIsTheHardwares) {
  Layout layout = Layout::accumulator(kWarpgroup, 2, 128, 176);
  EXPECT_EQ(layout.getNumRegisters(), 88);
  EXPECT_EQ(layout.getNumWarps(), 8);
  for (int64_t warp = 0; warp < 8; ++warp)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t v = 0; v < 22; ++v)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t i = 0; i < 2; ++i)
            EXPECT_EQ(layout.getPosition({warp, lane, 4 * v + 2 * h + i}),
                      (Position{16 * warp + lane / 4 + 8 * h, 8 * v + 2 * (lane % 4) + i}));
}

/// a0: row r, k 2q and 2q + 1; a1: row r + 8; a2: row r, k + 8; a3: both.
TEST(Layout, OperandAIsTheHardwares) {
  Layout layout = Layout::operandA(kWarpgroup, 1, 16, 64, 80);
  for (int64_t warp = 0; warp < 4; ++warp)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t step = 0; step < 5; ++step)
        for (int64_t word = 0; word < 4; ++word)
          for (int64_t i = 0; i < 2; ++i)
            EXPECT_EQ(layout.getPosition({warp, lane, 8 * step + 2 * word + i}),
                      (Position{16 * warp + lane / 4 + 8 * (word % 2),
                                16 * step + 8 * (word / 2) + 2 * (lane % 4) + i}));
}

TEST(Layout, EssayExample) {
  Layout layout = Layout::accumulator(kWarpgroup, 1, 64, 80);
  EXPECT_EQ(layout.getPosition({2, 13, 27}), (Position{43, 51}));
  EXPECT_EQ(layout.getOwner({43, 51}), (Owner{2, 13, 27}));
}

/// A 16-bit accumulator is an A operand as it stands; one of 8 bits, or of other units, is not.
TEST(Layout, ConversionsThatMoveNothing) {
  for (const Product &product : {kWarpgroup, kHalf, kWarp, kTallWarp})
    for (int64_t columns : {16, 80, 96, 112, 128, 144, 176, 256})
      for (int64_t units : {1, 2, 3}) {
        int64_t rows = product.rows * units;
        Layout accumulator = Layout::accumulator(product, units, rows, columns);
        EXPECT_TRUE(isSameMap(accumulator, Layout::operandA(product, units, 16, rows, columns)));
        if (columns % 32 == 0)
          EXPECT_FALSE(isSameMap(accumulator, Layout::operandA(product, units, 8, rows, columns)));
      }
  EXPECT_FALSE(isSameMap(Layout::accumulator(kWarpgroup, 1, 128, 64),
                         Layout::accumulator(kWarpgroup, 2, 128, 64)));
  EXPECT_FALSE(
      isSameMap(Layout::accumulator(kWarpgroup, 1, 64, 64), Layout::blocked(8, 8, 4, 64, 64)));
}

/// Four warps with a product of their own have what one warpgroup has: the fragments are the same.
TEST(Layout, WarpsOfProductsAreAWarpgroup) {
  EXPECT_TRUE(isSameMap(Layout::accumulator(kWarpgroup, 2, 128, 80),
                        Layout::accumulator(kWarp, 8, 128, 80)));
  EXPECT_TRUE(
      isSameMap(Layout::accumulator(kHalf, 4, 128, 80), Layout::accumulator(kWarp, 8, 128, 80)));
  EXPECT_FALSE(isSameMap(Layout::accumulator(kTallWarp, 4, 128, 80),
                         Layout::accumulator(kWarpgroup, 1, 128, 80)));
}
