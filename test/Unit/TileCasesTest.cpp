//===- TileCasesTest.cpp - cases of tiles against evaluating the mask -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// Masks of conditions by cell and by element, joined at random. An interpreter evaluates them on
// every element; conditions of tiles must be the same in all of a tile, and the case that they
// choose must tell the truth about it. ATTN_MASK_SEED takes a failure's seed again.
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/TileCases.h"
#include "test/Unit/MaskProblems.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
/// A mask of positions and of a table at their quotients, on up to 72 rows and keys.
class Blocks {
public:
  explicit Blocks(const std::string &body) : text(body) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, scf::SCFDialect,
                        tensor::TensorDialect>();
    context.allowUnregisteredDialects();
    module = parseSourceString<ModuleOp>(
        "func.func @f(%keep: tensor<?x?xi1>, %off: index, %w: index, %p: index) {\n"
        "  \"test.mask\"() ({\n  ^bb0(%b: index, %h: index, %m: index, %n: index):\n" +
            body + "\n    \"test.yield\"(%k) : (i1) -> ()\n  }) : () -> ()\n  return\n}\n",
        &context);
    EXPECT_TRUE(module) << body;
    function = *module->getOps<func::FuncOp>().begin();
    region = &function.getBody().front().front().getRegion(0);
    rows = random(1, 72);
    keys = random(1, 72);
    table.columns = 2 * kMost;
    int64_t density = random(0, 4);
    for (int64_t i = 0; i < table.columns * table.columns; ++i)
      table.elements.push_back(random(0, 3) < density ? -1 : 0);
    interpreter.set(function.getArgument(0), &table);
    for (unsigned i : {1, 2, 3})
      interpreter.set(function.getArgument(i), random(-20, 40));
  }

  size_t countConditions(Cell tile) { return findTileConditions(*region, tile).size(); }

  /// Whether every tile is what its case says; exactly so where it is asked for.
  void check(Cell tile, MaskAxis running, bool isExact = false) {
    TileCases cases = TileCases::analyze(*region, tile, nullptr, running);
    evaluate(cases.getConditions());
    for (const TileCases::Case &each : cases.getCases())
      for (unsigned i : {0, 1})
        interpreter.set(each.mask->getArgument(i), int64_t(0));
    for (int64_t m = 0; m < rows; m += tile.rows)
      for (int64_t n = 0; n < keys && !testing::Test::HasFailure(); n += tile.keys)
        checkTile(cases, tile, running, m, n, isExact);
    if (testing::Test::HasFailure())
      GTEST_FAIL() << text << "\nseed " << seed() << " tile " << tile.rows << " x " << tile.keys
                   << " of " << rows << " x " << keys;
  }

  static constexpr int64_t kMost = 72;

private:
  /// What the mask and the conditions are everywhere.
  void evaluate(ArrayRef<Value> conditions) {
    Block &body = region->front();
    Value keep = body.getTerminator()->getOperand(0);
    kept.assign(rows * keys, 0);
    hold.assign(conditions.size(), kept);
    for (unsigned i : {0, 1})
      interpreter.set(body.getArgument(i), int64_t(0));
    for (int64_t i = 0; i < rows * keys; ++i) {
      interpreter.set(body.getArgument(2), i / keys);
      interpreter.set(body.getArgument(3), i % keys);
      interpreter.run(body);
      kept[i] = interpreter.get(keep) != 0;
      for (auto [values, condition] : llvm::zip_equal(hold, conditions))
        values[i] = interpreter.get(condition) != 0;
    }
  }

  void checkTile(const TileCases &cases, Cell tile, MaskAxis running, int64_t m, int64_t n,
                 bool isExact) {
    int64_t lastM = std::min(m + tile.rows, rows), lastN = std::min(n + tile.keys, keys);
    int64_t count = 0, area = tile.rows * tile.keys;
    for (int64_t i = m; i < lastM; ++i)
      for (int64_t j = n; j < lastN; ++j) {
        count += kept[i * keys + j];
        for (const std::vector<char> &values : hold)
          EXPECT_EQ(values[i * keys + j], values[m * keys + n]) << "not one value in the tile";
      }
    const auto *found = llvm::find_if(cases.getCases(), [&](const TileCases::Case &each) {
      return llvm::all_of_zip(each.holds, hold, [&](bool holds, const std::vector<char> &values) {
        return holds == bool(values[m * keys + n]);
      });
    });
    if (found == cases.getCases().end()) {
      EXPECT_EQ(count, 0) << "no case keeps the tile at " << m << ", " << n;
      return;
    }
    bool keysRun = running == MaskAxis::Keys;
    int64_t at = keysRun ? n : m, size = keysRun ? tile.keys : tile.rows;
    bound::Environment environment{
        keysRun ? m : n, keysRun ? lastM : lastN, keysRun ? keys : rows, {}, {}};
    auto scalar = [&](Value value) { return interpreter.compute(value); };
    environment.scalar = scalar;
    TileRanges<int64_t> ranges = found->tiles.evaluateRanges(environment, size);
    bool isLive = ranges.begin <= at && at < ranges.end &&
                  found->tiles.evaluateTileIsLive(environment, at, at + size);
    bool isFull = ranges.fullBegin <= at && at < ranges.fullEnd;
    int64_t fixed = keysRun ? lastM - m : lastN - n;
    EXPECT_TRUE(count == 0 || isLive) << "skipped at " << m << ", " << n;
    EXPECT_TRUE(!isFull || count == fixed * size) << "not full at " << m << ", " << n;
    if (isExact)
      EXPECT_EQ(isLive, count != 0) << "visited at " << m << ", " << n;
    if (isExact && count == area)
      EXPECT_TRUE(isFull) << "full at " << m << ", " << n;
  }

  std::string text;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  Region *region = nullptr;
  int64_t rows, keys;
  Tensor table;
  std::vector<char> kept;
  std::vector<std::vector<char>> hold;
  Interpreter interpreter;
};

/// A read at quotients by `rows` and `keys`, as users spell them, or a position itself.
std::string writeRead(MaskWriter &writer, int64_t rows, int64_t keys) {
  auto divide = [&](const char *position, int64_t divisor) -> std::string {
    if (divisor == 1)
      return position;
    int64_t part = divisor % 2 == 0 && random(0, 2) == 0 ? 2 : 1;
    std::string index = position;
    if (random(0, 3) == 0)
      index = writer.binary("addi", index, writer.constant(divisor * random(0, 2)));
    std::string op = writer.pick({"floordivsi", "divui", "divsi"});
    if (part > 1)
      index = writer.binary(op, index, writer.constant(part));
    return writer.binary(op, index, writer.constant(divisor / part));
  };
  std::string row = divide("%m", rows), key = divide("%n", keys);
  return writer.fresh("tensor.extract %keep[" + row + ", " + key + "] : tensor<?x?xi1>");
}

constexpr int64_t kCells[] = {1, 3, 4, 8, 16, 32};

std::string writeMask(MaskWriter &writer, int atoms) {
  if (atoms > 1) {
    int left = random(1, atoms - 1);
    std::string a = writeMask(writer, left), b = writeMask(writer, atoms - left);
    if (random(0, 6) == 0)
      return writer.fresh("arith.select " + writeMask(writer, 1) + ", " + a + ", " + b + " : i1");
    std::string result = writer.binary(writer.pick({"andi", "andi", "ori", "xori"}), a, b, "i1");
    return random(0, 4) ? result
                        : writer.binary("xori", result, writer.fresh("arith.constant true"), "i1");
  }
  if (random(0, 1))
    return writer.unitAtom();
  return writeRead(writer, kCells[random(0, 5)], kCells[random(0, 5)]);
}

const std::string keepAt = R"(
  %c16 = arith.constant 16 : index
  %c8 = arith.constant 8 : index
  %i = arith.floordivsi %m, %c16 : index
  %j = arith.floordivsi %n, %c8 : index
  %keepHere = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
)";
} // namespace

TEST(TileCases, CellsAreMultiplesOfTiles) {
  Blocks mask(keepAt + "%k = arith.andi %keepHere, %keepHere : i1");
  for (Cell tile : {Cell{16, 8}, Cell{8, 8}, Cell{1, 1}, Cell{16, 4}})
    EXPECT_EQ(mask.countConditions(tile), 1u);
  for (Cell tile : {Cell{32, 8}, Cell{16, 16}, Cell{3, 8}})
    EXPECT_EQ(mask.countConditions(tile), 0u);
}

TEST(TileCases, ShiftedQuotientsHaveSmallerCells) {
  Blocks mask(R"(
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %late = arith.addi %m, %c4 : index
    %i = arith.divui %late, %c16 : index
    %k = tensor.extract %keep[%i, %off] : tensor<?x?xi1>)");
  // No multiple of 16 may be shifted: what is left of it is only known to be a row's.
  EXPECT_EQ(mask.countConditions({16, 64}), 0u);
  EXPECT_EQ(mask.countConditions({1, 64}), 1u);
}

TEST(TileCases, BlocksAloneAndUnderTheDiagonalAreExact) {
  for (int i = 0; i < 20 && !HasFailure(); ++i)
    for (MaskAxis running : {MaskAxis::Keys, MaskAxis::Rows})
      for (const char *fine :
           {"%k = arith.andi %keepHere, %keepHere : i1",
            "%fine = arith.cmpi sle, %n, %m : index\n%k = arith.andi %keepHere, %fine : i1",
            "%d = arith.addi %m, %off : index\n%fine = arith.cmpi sle, %n, %d : index\n"
            "%k = arith.ori %keepHere, %fine : i1"})
        for (Cell tile : {Cell{16, 8}, Cell{8, 8}, Cell{4, 2}})
          Blocks(keepAt + fine).check(tile, running, /*isExact=*/true);
}

TEST(TileCases, RandomMasksAreSound) {
  size_t conditions = 0, several = 0;
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    MaskWriter writer(draw);
    std::string keep = writeMask(writer, random(1, 5));
    Blocks mask(writer.text + "%k = arith.andi " + keep + ", " + keep + " : i1");
    for (int tries = 0; tries < 3; ++tries) {
      Cell tile = {kCells[random(0, 5)], kCells[random(0, 5)]};
      conditions += mask.countConditions(tile) > 0;
      several += mask.countConditions(tile) > 1;
      mask.check(tile, random(0, 1) ? MaskAxis::Keys : MaskAxis::Rows);
    }
  }
  // The test is about something.
  EXPECT_GT(conditions, 50u);
  EXPECT_GT(several, 5u);
}

TEST(TileCases, ManyConditionsStayInTheMask) {
  MaskWriter writer(draw);
  std::string keep = writeRead(writer, 8, 8);
  // Conditions by element between them: none is a part of a larger one.
  for (int i = 0; i < 5; ++i)
    keep = writer.binary("ori", writer.binary("andi", keep, writer.unitAtom(), "i1"),
                         writeRead(writer, 8, 8), "i1");
  Blocks mask(writer.text + "%k = arith.andi " + keep + ", " + keep + " : i1");
  EXPECT_GT(mask.countConditions({8, 8}), TileCases::maxConditions);
  mask.check({8, 8}, MaskAxis::Keys);
}
