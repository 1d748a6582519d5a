//===- MaskTilesTest.cpp - tile status against evaluating the mask ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// Every mask is a piece of MLIR text. An interpreter evaluates it on every element of random
// problems, and runs the operations that the analysis emits; the two must agree on each tile, for
// blocks of rows and for blocks of keys. The seed is new in each run; a failure names it, and
// ATTN_MASK_SEED takes it again.
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/MaskTiles.h"
#include "test/Unit/MaskProblems.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
enum class Expect { Sound, ExactFull, Exact };

/// One mask, analysed once, with the bounds for every tile size emitted in front of it. Blocks own
/// rows where keys run, and keys where rows run.
class Mask {
public:
  explicit Mask(const std::string &body, bool facts = false, MaskAxis running = MaskAxis::Keys,
                int indexWidth = 64)
      : keysRun(running == MaskAxis::Keys), text(body) {
    interpreter.indexWidth = indexWidth;
    context.loadDialect<arith::ArithDialect, func::FuncDialect, scf::SCFDialect,
                        tensor::TensorDialect>();
    context.allowUnregisteredDialects();
    std::string source =
        "func.func @f(%bb: index, %hh: index, %m0: index, %m1: index, %nn: index, %n0: index, "
        "%n1: index, %off: index, %w: index, %p: index, %c: index, %off32: i32, %flag: i1, "
        "%len: tensor<?xindex>, %idq: tensor<?x?xi32>, %idk: tensor<?x?xi32>, %big: i64, "
        "%huge: i64) {\n"
        "  \"test.mask\"() ({\n  ^bb0(%b: index, %h: index, %m: index, %n: index):\n" +
        body + "\n    \"test.yield\"(%k) : (i1) -> ()\n  }) : () -> ()\n  return\n}\n";
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module) << source;
    function = *module->getOps<func::FuncOp>().begin();
    Operation &op = function.getBody().front().front();
    region = &op.getRegion(0);
    auto factOf = [&](Value tensor) -> std::optional<TensorFact> {
      if (facts && llvm::is_contained({argument(13), argument(14), argument(15)}, tensor))
        return TensorFact::NonDecreasing;
      return std::nullopt;
    };
    tiles = MaskTiles::analyze(*region, factOf, running);
    OpBuilder builder(&op);
    MaskBlock block{argument(0), argument(1), argument(2), argument(3), argument(4)};
    for (int64_t size : tileSizes) {
      ranges.push_back(tiles.emitRanges(builder, op.getLoc(), block, size));
      live.push_back(
          MaskTiles::emitTileIsLive(builder, op.getLoc(), ranges.back(), argument(5), argument(6)));
    }
    EXPECT_TRUE(succeeded(verify(*module)));
  }

  Value argument(unsigned i) { return function.getArgument(i); }

  void check(const Problem &problem, Expect expect) {
    int64_t b = random(0, batches - 1), h = random(0, 3);
    load(problem, b, h);
    Block &body = region->front();
    Value keep = body.getTerminator()->getOperand(0);
    std::vector<char> kept(problem.m * problem.n);
    for (int64_t m = 0; m < problem.m; ++m)
      for (int64_t n = 0; n < problem.n; ++n) {
        interpreter.set(body.getArgument(2), m);
        interpreter.set(body.getArgument(3), n);
        interpreter.run(body);
        kept[m * problem.n + n] = interpreter.get(keep) != 0;
      }
    int64_t owned = keysRun ? problem.m : problem.n, size = tileSizes[random(0, 5)];
    unsigned which = random(0, 5);
    for (int64_t begin = 0; begin < owned; begin += size) {
      checkBlock(problem, kept, begin, std::min(begin + size, owned), which, expect);
      if (testing::Test::HasFailure())
        GTEST_FAIL() << text << "\n"
                     << tiles.describe() << "\nseed " << seed() << " M " << problem.m << " N "
                     << problem.n << " off " << problem.off << " w " << problem.w << " p "
                     << problem.p << " c " << problem.c << " big " << problem.big << " huge "
                     << problem.huge << " block " << begin << " of " << size << " tile "
                     << tileSizes[which] << " b " << b;
    }
  }

  MaskTiles tiles;
  std::vector<MaskTiles::Ranges> ranges;
  func::FuncOp function;

private:
  void load(const Problem &problem, int64_t b, int64_t h) {
    Block &body = region->front();
    const int64_t scalars[] = {b,
                               h,
                               0,
                               0,
                               keysRun ? problem.n : problem.m,
                               0,
                               0,
                               problem.off,
                               problem.w,
                               problem.p,
                               problem.c,
                               problem.off,
                               -int64_t(problem.flag)};
    for (auto [i, x] : llvm::enumerate(scalars))
      interpreter.set(argument(i), x);
    interpreter.set(argument(13), &problem.len);
    interpreter.set(argument(14), &problem.idq);
    interpreter.set(argument(15), &problem.idk);
    interpreter.set(argument(16), problem.big);
    interpreter.set(argument(17), problem.huge);
    interpreter.set(body.getArgument(0), b);
    interpreter.set(body.getArgument(1), h);
  }

  /// Where there is to be one interval without holes, some fixed position keeps each of it.
  void checkHoles(const Problem &problem, const std::vector<char> &kept,
                  const bound::Environment &environment) {
    if (!tiles.keepsOneInterval())
      return;
    TileRanges<int64_t> all = tiles.evaluateRanges(environment, /*tileSize=*/1);
    EXPECT_TRUE(!tiles.keepsFromFirst() || all.begin == 0);
    for (int64_t i = all.begin; i < all.end; ++i) {
      bool isKept = false;
      for (int64_t fixed = environment.fixedBegin; fixed < environment.fixedEnd; ++fixed)
        isKept |= keysRun ? kept[fixed * problem.n + i] : kept[i * problem.n + fixed];
      EXPECT_TRUE(isKept) << "a hole at " << i;
    }
  }

  /// Where a last tile that is not whole may be full, all that a full one has is kept; nothing else
  /// changes, but that masks that drop first positions only have no tiles behind the full ones.
  void checkLast(const Problem &problem, const std::vector<char> &kept,
                 const bound::Environment &environment, int64_t size) {
    int64_t length = keysRun ? problem.n : problem.m;
    TileRanges<int64_t> whole = tiles.evaluateRanges(environment, size);
    TileRanges<int64_t> some = tiles.evaluateRanges(environment, size, /*lastMayBeFull=*/true);
    EXPECT_EQ(some.begin, whole.begin);
    EXPECT_EQ(some.fullBegin, whole.fullBegin);
    EXPECT_EQ(some.end, whole.end);
    EXPECT_TRUE(some.fullEnd == whole.fullEnd || some.fullEnd == some.end);
    for (int64_t i = some.fullBegin; i < std::min(some.fullEnd, length); ++i)
      for (int64_t fixed = environment.fixedBegin; fixed < environment.fixedEnd; ++fixed)
        EXPECT_TRUE(keysRun ? kept[fixed * problem.n + i] : kept[i * problem.n + fixed])
            << "not full: " << i;
  }

  void checkBlock(const Problem &problem, const std::vector<char> &kept, int64_t fixedBegin,
                  int64_t fixedEnd, unsigned which, Expect expect) {
    int64_t size = tileSizes[which], length = keysRun ? problem.n : problem.m;
    interpreter.set(argument(2), fixedBegin);
    interpreter.set(argument(3), fixedEnd);
    interpreter.run(function.getBody().front());
    const MaskTiles::Ranges &emitted = ranges[which];
    int64_t rangeBegin = interpreter.get(emitted.begin), rangeEnd = interpreter.get(emitted.end);
    int64_t fullBegin = interpreter.get(emitted.fullBegin);
    int64_t fullEnd = interpreter.get(emitted.fullEnd);

    bound::Environment environment{fixedBegin, fixedEnd, length, {}, {}};
    auto scalar = [&](Value value) { return interpreter.compute(value); };
    auto element = [&](Value value, ArrayRef<int64_t> indices) {
      const Tensor &tensor = *interpreter.tensor(value);
      return tensor
          .elements[indices.size() == 1 ? indices[0] : indices[0] * tensor.columns + indices[1]];
    };
    environment.scalar = scalar;
    environment.element = element;
    TileRanges<int64_t> numbers = tiles.evaluateRanges(environment, size);
    EXPECT_EQ(numbers.begin, rangeBegin);
    EXPECT_EQ(numbers.fullBegin, fullBegin);
    EXPECT_EQ(numbers.fullEnd, fullEnd);
    EXPECT_EQ(numbers.end, rangeEnd);

    checkHoles(problem, kept, environment);
    checkLast(problem, kept, environment, size);
    int64_t tileCount = (length + size - 1) / size;
    EXPECT_LE(0, rangeBegin);
    EXPECT_LE(rangeBegin, fullBegin);
    EXPECT_LE(fullBegin, fullEnd);
    EXPECT_LE(fullEnd, rangeEnd);
    EXPECT_LE(rangeEnd, tileCount * size);
    EXPECT_TRUE(rangeBegin % size == 0 && fullBegin % size == 0 && fullEnd % size == 0 &&
                rangeEnd % size == 0);
    EXPECT_TRUE(emitted.mayHaveLeftPartial || rangeBegin == fullBegin);
    EXPECT_TRUE(emitted.mayHaveFull || fullBegin == fullEnd);
    EXPECT_TRUE(emitted.mayHaveRightPartial || fullEnd == rangeEnd);

    int64_t run = 0, longest = 0, first = -1, last = -1;
    for (int64_t at = 0; at < tileCount * size; at += size) {
      int64_t end = std::min(at + size, length), count = 0;
      for (int64_t fixed = fixedBegin; fixed < fixedEnd; ++fixed)
        for (int64_t i = at; i < end; ++i)
          count += keysRun ? kept[fixed * problem.n + i] : kept[i * problem.n + fixed];
      bool isFull = count == (fixedEnd - fixedBegin) * size;
      run = isFull ? run + 1 : 0;
      longest = std::max(longest, run);
      if (count) {
        first = first < 0 ? at : first;
        last = at + size;
      }
      bool isVisited = at >= rangeBegin && at < rangeEnd;
      bool inFull = at >= fullBegin && at < fullEnd;
      EXPECT_TRUE(!inFull || isFull) << "not full: " << at;
      if (isVisited && !inFull && live[which]) {
        bool isLive = tiles.evaluateTileIsLive(environment, at, at + size);
        if (tileCount <= 8) {
          interpreter.set(argument(5), at);
          interpreter.set(argument(6), at + size);
          interpreter.run(function.getBody().front());
          EXPECT_EQ(interpreter.get(live[which]) != 0, isLive);
        }
        isVisited = isLive;
      }
      EXPECT_TRUE(count == 0 || isVisited) << "skipped: " << at;
      if (expect == Expect::Exact)
        EXPECT_TRUE(count != 0 || !isVisited) << "visited: " << at;
    }
    if (expect == Expect::Exact) {
      EXPECT_EQ(rangeBegin, first < 0 ? rangeBegin : first);
      EXPECT_EQ(rangeEnd, first < 0 ? rangeBegin : last);
    }
    if (expect != Expect::Sound)
      EXPECT_EQ((fullEnd - fullBegin) / size, longest);
  }

  bool keysRun;
  std::string text;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Region *region = nullptr;
  std::vector<Value> live;
  Interpreter interpreter;
};

/// Checks blocks of rows and blocks of keys. The latter may be less exact, where it is said.
void checkMask(const std::string &body, Expect expect, int problems = 150, bool facts = false,
               Problem (*make)() = randomProblem, std::optional<Expect> expectOverRows = {},
               int indexWidth = 64) {
  Mask overKeys(body, facts, MaskAxis::Keys, indexWidth);
  Mask overRows(body, facts, MaskAxis::Rows, indexWidth);
  for (int i = 0; i < problems && !testing::Test::HasFailure(); ++i) {
    Problem problem = make();
    overKeys.check(problem, expect);
    overRows.check(problem, expectOverRows.value_or(expect));
  }
}

//===----------------------------------------------------------------------===//
// Named masks
//===----------------------------------------------------------------------===//

const std::string causal = R"(
  %d = arith.addi %m, %off : index
  %causal = arith.cmpi sle, %n, %d : index
)";
const std::string window = R"(
  %left = arith.subi %d, %w : index
  %inside = arith.cmpi sge, %n, %left : index
)";
} // namespace

TEST(MaskTiles, CausalTopLeft) {
  checkMask("%k = arith.cmpi uge, %m, %n : index", Expect::Exact);
  checkMask("%x = arith.index_cast %m : index to i32\n %y = arith.index_cast %n : index to i32\n"
            "%k = arith.cmpi sge, %x, %y : i32",
            Expect::Exact);
}

TEST(MaskTiles, CausalBottomRight) {
  checkMask("%d = arith.addi %m, %off : index\n %k = arith.cmpi sle, %n, %d : index", Expect::Exact,
            400);
  checkMask("%x = arith.index_cast %m : index to i64\n %y = arith.index_cast %n : index to i64\n"
            "%o = arith.extsi %off32 : i32 to i64\n %d = arith.addi %x, %o : i64\n"
            "%k = arith.cmpi sle, %y, %d : i64",
            Expect::Exact);
}

TEST(MaskTiles, CausalIsOneClosedFormPerBound) {
  Mask mask("%d = arith.addi %m, %off : index\n %k = arith.cmpi sle, %n, %d : index");
  EXPECT_EQ(mask.tiles.describe(), "keeps n < m1 + s0; drops n >= m0 + s0 + 1");
  for (const MaskTiles::Ranges &ranges : mask.ranges) {
    EXPECT_FALSE(ranges.mayHaveLeftPartial);
    EXPECT_TRUE(ranges.mayHaveFull);
    EXPECT_TRUE(ranges.mayHaveRightPartial);
    EXPECT_TRUE(ranges.live.empty());
  }
}

TEST(MaskTiles, CausalOverRowsIsOneClosedFormPerBound) {
  Mask mask("%d = arith.addi %m, %off : index\n %k = arith.cmpi sle, %n, %d : index", false,
            MaskAxis::Rows);
  EXPECT_EQ(mask.tiles.describe(), "keeps m >= n0 - s0; drops m < n1 - s0 - 1");
  for (const MaskTiles::Ranges &ranges : mask.ranges) {
    EXPECT_TRUE(ranges.mayHaveLeftPartial);
    EXPECT_TRUE(ranges.mayHaveFull);
    EXPECT_TRUE(ranges.live.empty());
  }
}

TEST(MaskTiles, PrefixOverRowsIsADisjunction) {
  // The keys of the prefix are kept by all rows, the others by those behind them.
  Mask mask(causal + "%prefix = arith.cmpi slt, %n, %p : index\n"
                     "%k = arith.ori %prefix, %causal : i1",
            false, MaskAxis::Rows);
  EXPECT_EQ(mask.tiles.describe(),
            "keeps every m if min(s0 - 1, n1 - 1) - n0 >= 0, or m >= n0 - s1; "
            "drops m < n1 - s1 - 1 if n1 - max(n0, s0) - 1 >= 0");
}

TEST(MaskTiles, Window) {
  checkMask(causal + window + "%k = arith.andi %causal, %inside : i1", Expect::Exact, 600);
  checkMask("%d = arith.subi %m, %n : index\n %c7 = arith.constant 7 : index\n"
            "%c5 = arith.constant -5 : index\n %x = arith.cmpi sle, %d, %c7 : index\n"
            "%y = arith.cmpi sge, %d, %c5 : index\n %k = arith.andi %x, %y : i1",
            Expect::Exact);
}

/// Which masks are known to leave no holes; that they leave none, every test here checks.
TEST(MaskTiles, HolesAreFound) {
  auto isOne = [](const std::string &body, bool facts = false) {
    return Mask(body, facts).tiles.keepsOneInterval();
  };
  const std::string key = "%id = tensor.extract %idk[%b, %n] : tensor<?x?xi32>\n"
                          "%c2 = arith.constant 2 : i32\n"
                          "%some = arith.cmpi ne, %id, %c2 : i32\n";
  EXPECT_TRUE(isOne(causal + "%k = arith.andi %causal, %causal : i1"));
  EXPECT_TRUE(isOne(causal + window + "%k = arith.andi %causal, %inside : i1"));
  EXPECT_TRUE(isOne(causal + "%prefix = arith.cmpi slt, %n, %p : index\n"
                             "%k = arith.ori %prefix, %causal : i1"));
  EXPECT_FALSE(isOne(causal + window +
                     "%sink = arith.cmpi slt, %n, %p : index\n"
                     "%near = arith.ori %sink, %inside : i1\n"
                     "%k = arith.andi %causal, %near : i1"));
  // What is not decided may be anything, also beside what is.
  for (bool facts : {false, true})
    EXPECT_FALSE(isOne(causal + key + "%k = arith.andi %some, %causal : i1", facts));
  EXPECT_FALSE(isOne("%c2 = arith.constant 2 : index\n %d = arith.muli %m, %c2 : index\n"
                     "%k = arith.cmpi eq, %n, %d : index"));
}

TEST(MaskTiles, WindowWithSinks) {
  checkMask(causal + window +
                "%sink = arith.cmpi slt, %n, %p : index\n"
                "%near = arith.ori %sink, %inside : i1\n %k = arith.andi %causal, %near : i1",
            Expect::Exact, 600);
}

TEST(MaskTiles, Prefix) {
  checkMask(causal + "%prefix = arith.cmpi slt, %n, %p : index\n"
                     "%k = arith.ori %prefix, %causal : i1",
            Expect::Exact, 300);
}

TEST(MaskTiles, Chunks) {
  for (int size : {1, 4, 7, 16, 48}) {
    std::string chunk = "%s = arith.constant " + std::to_string(size) + " : index\n" + causal +
                        window +
                        "%x = arith.floordivsi %d, %s : index\n"
                        "%y = arith.divui %n, %s : index\n"
                        "%same = arith.cmpi eq, %x, %y : index\n";
    checkMask(chunk + "%k = arith.andi %same, %same : i1", Expect::Exact);
    checkMask(chunk + "%k = arith.andi %same, %causal : i1", Expect::Exact);
    checkMask(chunk + "%z = arith.andi %same, %causal : i1\n%k = arith.andi %z, %inside : i1",
              Expect::Exact);
  }
  checkMask("%x = arith.divui %m, %c : index\n %y = arith.divui %n, %c : index\n"
            "%same = arith.cmpi eq, %x, %y : index\n %u = arith.cmpi sle, %n, %m : index\n"
            "%k = arith.andi %same, %u : i1",
            Expect::Exact, 300);
}

TEST(MaskTiles, KeyLengths) {
  checkMask(causal + "%l = tensor.extract %len[%b] : tensor<?xindex>\n"
                     "%in = arith.cmpi slt, %n, %l : index\n %k = arith.andi %in, %causal : i1",
            Expect::Exact, 300);
  checkMask("%l = tensor.extract %len[%b] : tensor<?xindex>\n"
            "%k = arith.cmpi ult, %n, %l : index",
            Expect::Sound);
}

TEST(MaskTiles, CapturedFlag) {
  checkMask(causal + "%c0 = arith.constant 1 : index\n %odd = arith.cmpi eq, %h, %c0 : index\n"
                     "%x = arith.ori %flag, %odd : i1\n %k = arith.select %x, %causal, %flag : i1",
            Expect::Exact, 300);
}

TEST(MaskTiles, Documents) {
  const std::string same = "%q = tensor.extract %idq[%b, %m] : tensor<?x?xi32>\n"
                           "%t = tensor.extract %idk[%b, %n] : tensor<?x?xi32>\n"
                           "%same = arith.cmpi eq, %q, %t : i32\n";
  checkMask(same + "%k = arith.andi %same, %same : i1", Expect::ExactFull, 300, true);
  checkMask(same + "%k = arith.andi %same, %same : i1", Expect::Exact, 400, true, selfProblem);
  checkMask(same + causal + "%k = arith.andi %same, %causal : i1", Expect::Exact, 400, true,
            selfProblem);
  checkMask(same + causal + window +
                "%x = arith.andi %same, %causal : i1\n"
                "%k = arith.andi %x, %inside : i1",
            Expect::Exact, 400, true, selfProblem);
  // Without the facts nothing is known.
  Mask mask(same + "%k = arith.andi %same, %same : i1");
  EXPECT_TRUE(mask.tiles.isUndecided());
  mask.check(randomProblem(), Expect::Sound);
}

TEST(MaskTiles, DocumentsOfTables) {
  const std::string same = "%i = tensor.extract %len[%m] : tensor<?xindex>\n"
                           "%j = tensor.extract %len[%n] : tensor<?xindex>\n"
                           "%q = tensor.extract %idk[%b, %i] : tensor<?x?xi32>\n"
                           "%t = tensor.extract %idk[%b, %j] : tensor<?x?xi32>\n"
                           "%same = arith.cmpi eq, %q, %t : i32\n";
  checkMask(same + "%k = arith.andi %same, %same : i1", Expect::ExactFull, 300, true, tableProblem);
  checkMask(same + "%past = arith.cmpi sle, %j, %i : index\n"
                   "%k = arith.andi %same, %past : i1",
            Expect::ExactFull, 400, true, tableProblem);
  // A table of a table.
  checkMask("%i = tensor.extract %len[%n] : tensor<?xindex>\n"
            "%j = tensor.extract %len[%i] : tensor<?xindex>\n"
            "%t = tensor.extract %idk[%b, %j] : tensor<?x?xi32>\n"
            "%x = arith.index_cast %t : i32 to index\n"
            "%k = arith.cmpi sge, %x, %p : index",
            Expect::ExactFull, 300, true, tableProblem);
  // Falling indices are not searched.
  checkMask("%c0 = arith.constant 0 : index\n"
            "%i = arith.subi %c0, %n : index\n"
            "%j = arith.addi %i, %m : index\n"
            "%p0 = arith.maxsi %j, %c0 : index\n"
            "%t = tensor.extract %idk[%b, %p0] : tensor<?x?xi32>\n"
            "%x = arith.index_cast %t : i32 to index\n"
            "%k = arith.cmpi sge, %x, %p : index",
            Expect::Sound, 200, true, tableProblem);
}

TEST(MaskTiles, SearchedBounds) {
  const std::string position = "%t = tensor.extract %len[%n] : tensor<?xindex>\n";
  checkMask(causal + position + "%k = arith.cmpi sle, %t, %d : index", Expect::Exact, 200, true);
  checkMask(causal + position + "%k = arith.cmpi sgt, %t, %d : index", Expect::Exact, 200, true);
  checkMask(causal + position +
                "%x = arith.cmpi sgt, %t, %p : index\n"
                "%k = arith.andi %x, %causal : i1",
            Expect::Exact, 200, true, randomProblem,
            // A search finds where the position that runs begins, not the one that is fixed.
            Expect::Sound);
}

TEST(MaskTiles, SearchesSeeThroughBoundsOfElements) {
  // What attn-expand-variants and attn-widen-indices write of a table and of an origin.
  const std::string bounded = "%least = arith.constant -1073676288 : index\n"
                              "%most = arith.constant 1073676288 : index\n"
                              "%zero = arith.constant 0 : index\n"
                              "%end = arith.constant 268435456 : index\n"
                              "%raised = arith.maxsi %t, %least : index\n"
                              "%there = arith.minsi %raised, %most : index\n"
                              "%natural = arith.maxsi %off, %zero : index\n"
                              "%origin = arith.minsi %natural, %end : index\n"
                              "%whole = arith.subi %there, %origin : index\n";
  for (const auto &[table, own] : {std::pair("%n", "%m"), std::pair("%m", "%n")})
    for (const char *predicate : {"sle", "sgt"})
      checkMask("%t = tensor.extract %len[" + std::string(table) + "] : tensor<?xindex>\n" +
                    bounded + "%k = arith.cmpi " + predicate + ", %whole, " + own + " : index",
                Expect::Exact, 200, true, farTableProblem);
  // Constants that decide stay.
  checkMask("%t = tensor.extract %len[%n] : tensor<?xindex>\n"
            "%least = arith.constant 5 : index\n"
            "%most = arith.constant 20 : index\n"
            "%raised = arith.maxsi %t, %least : index\n"
            "%there = arith.minsi %raised, %most : index\n"
            "%next = arith.addi %there, %m : index\n"
            "%k = arith.cmpi sle, %next, %p : index",
            Expect::Sound, 200, true, farTableProblem);
}

TEST(MaskTiles, SignsAreRespected) {
  // Neither a division that rounds to zero nor a zero extension is linear for negative numbers.
  const std::string difference = "%d = arith.subi %n, %m : index\n"
                                 "%four = arith.constant 4 : index\n"
                                 "%zero = arith.constant 0 : index\n";
  for (const char *op : {"divsi", "divui", "remsi", "remui", "ceildivsi", "floordivsi"})
    for (const char *predicate : {"sle", "sge", "eq", "ule", "ugt"})
      checkMask(difference + "%q = arith." + op + " %d, %four : index\n%k = arith.cmpi " +
                    predicate + ", %q, %zero : index",
                Expect::Sound, 20);
  checkMask(difference + "%x = arith.index_cast %d : index to i32\n"
                         "%y = arith.extui %x : i32 to i64\n%z = arith.constant 3 : i64\n"
                         "%k = arith.cmpi sle, %y, %z : i64",
            Expect::Sound);
}

/// What the first and the last kept key of a block depend on, if on anything.
TEST(MaskTiles, KeptKeysAreBounded) {
  auto isBounded = [](const std::string &body) { return Mask(body).tiles.boundsKept(); };
  EXPECT_TRUE(isBounded("%k = arith.cmpi sle, %n, %m : index"));
  EXPECT_TRUE(isBounded("%k = arith.cmpi sge, %n, %m : index"));
  EXPECT_TRUE(isBounded("%k = arith.constant false"));
  EXPECT_FALSE(isBounded("%k = arith.constant true"));
  EXPECT_FALSE(isBounded("%c3 = arith.constant 3 : index\n%c0 = arith.constant 0 : index\n"
                         "%r = arith.remui %n, %c3 : index\n"
                         "%k = arith.cmpi ne, %r, %c0 : index"));
}

TEST(MaskTiles, HugeFactorsAreUndecided) {
  Mask mask("%g = arith.constant 1000000000 : index\n%x = arith.muli %m, %g : index\n"
            "%y = arith.muli %x, %g : index\n%z = arith.muli %y, %g : index\n"
            "%k = arith.cmpi sle, %n, %z : index");
  EXPECT_TRUE(mask.tiles.isUndecided());
}

TEST(MaskTiles, SharedCasesEndInTime) {
  std::string text = "%x0 = arith.maxsi %m, %n : index\n";
  for (int i = 1; i < 60; ++i) {
    std::string last = "%x" + std::to_string(i - 1);
    text += "%x" + std::to_string(i) + " = arith.minsi " + last + ", " + last + " : index\n";
  }
  checkMask(text + "%k = arith.cmpi sle, %x59, %n : index", Expect::Sound, 20);
}

TEST(MaskTiles, MinimaAndMaxima) {
  checkMask(causal + "%x = arith.maxsi %d, %p : index\n %k = arith.cmpi slt, %n, %x : index",
            Expect::Exact);
  checkMask(causal + "%x = arith.minsi %n, %p : index\n %k = arith.cmpi sle, %d, %x : index",
            Expect::Exact);
  checkMask(causal + "%x = arith.select %flag, %d, %p : index\n"
                     "%k = arith.cmpi sle, %n, %x : index",
            Expect::Sound);
}

TEST(MaskTiles, Constants) {
  Mask all("%k = arith.constant true"), none("%k = arith.constant false");
  EXPECT_TRUE(all.tiles.isAlwaysFull());
  EXPECT_TRUE(none.tiles.isAlwaysSkip());
  for (int i = 0; i < 50; ++i) {
    all.check(randomProblem(), Expect::Exact);
    none.check(randomProblem(), Expect::Exact);
  }
  Region empty;
  EXPECT_TRUE(MaskTiles::analyze(empty).isAlwaysFull());
}

TEST(MaskTiles, Opaque) {
  checkMask("%p7 = arith.constant 7 : index\n %x = arith.muli %m, %n : index\n"
            "%r = arith.remui %x, %p7 : index\n %z = arith.constant 0 : index\n"
            "%o = arith.cmpi eq, %r, %z : index\n %u = arith.cmpi sle, %n, %m : index\n"
            "%k = arith.andi %o, %u : i1",
            Expect::Sound);
}

TEST(MaskTiles, NarrowArithmeticMayWrap) {
  // 127 + m wraps in i8, so the comparison cannot be solved.
  Mask mask("%x = arith.index_cast %m : index to i8\n %y = arith.index_cast %n : index to i8\n"
            "%s = arith.constant 127 : i8\n %d = arith.addi %x, %s : i8\n"
            "%k = arith.cmpi sle, %y, %d : i8");
  EXPECT_TRUE(mask.tiles.isUndecided());
  // An unknown i32 offset may wrap too, unless the operation says that it does not.
  std::string cast = "%x = arith.index_cast %m : index to i32\n"
                     "%y = arith.index_cast %n : index to i32\n";
  EXPECT_TRUE(Mask(cast + "%d = arith.addi %x, %off32 : i32\n %k = arith.cmpi sle, %y, %d : i32")
                  .tiles.isUndecided());
  checkMask(cast + "%d = arith.addi %x, %off32 overflow<nsw> : i32\n"
                   "%k = arith.cmpi sle, %y, %d : i32",
            Expect::Exact);
}

//===----------------------------------------------------------------------===//
// Numbers of any size
//===----------------------------------------------------------------------===//

// A sanitizer sees in a tenth of the masks what it takes ten times as long for.
#if __has_feature(address_sanitizer)
static constexpr int kNumMasks = 40;
#else
static constexpr int kNumMasks = 400;
#endif

namespace {
/// In the type that numbers of any size have.
const std::string wide = R"(
  %m64 = arith.index_cast %m : index to i64
  %n64 = arith.index_cast %n : index to i64
  %d64 = arith.subi %n64, %m64 : i64
)";

/// With indices of 64 bits, and with the 32 they have on GPUs.
void checkWide(const std::string &body, Expect expect, bool facts = false) {
  for (int indexWidth : {32, 64})
    checkMask(wide + body, expect, kNumMasks / 5, facts, wideProblem, {}, indexWidth);
}
} // namespace

TEST(MaskTiles, NumbersBeyondAllPositions) {
  checkWide("%k = arith.cmpi sle, %d64, %big : i64", Expect::Exact);
  checkWide("%k = arith.cmpi eq, %d64, %big : i64", Expect::Exact);
  checkWide("%l = arith.addi %m64, %big : i64\n %k = arith.cmpi slt, %n64, %l : i64",
            Expect::Exact);
  checkWide("%a = arith.cmpi sle, %d64, %big : i64\n %b2 = arith.cmpi sge, %d64, %huge : i64\n"
            "%k = arith.andi %a, %b2 : i1",
            Expect::Exact);
}

TEST(MaskTiles, DifferencesOfNumbersBeyondAllPositions) {
  checkWide("%l = arith.subi %m64, %big : i64\n %r = arith.subi %n64, %huge : i64\n"
            "%k = arith.cmpi sle, %r, %l : i64",
            Expect::Exact);
}

TEST(MaskTiles, RoundedNumbersBeyondAllPositions) {
  std::string eight = "%c8 = arith.constant 8 : i64\n%c2 = arith.constant 2 : i64\n"
                      "%chunk = arith.floordivsi %m64, %c8 : i64\n"
                      "%l = arith.addi %n64, %big : i64\n";
  checkWide(eight + "%x = arith.floordivsi %l, %c8 : i64\n %k = arith.cmpi sle, %x, %chunk : i64",
            Expect::Sound);
  checkWide(eight + "%x = arith.remsi %l, %c8 : i64\n %k = arith.cmpi sle, %x, %c2 : i64",
            Expect::Sound);
  checkWide(eight + "%x = arith.muli %m64, %c2 : i64\n %k = arith.cmpi sle, %x, %l : i64",
            Expect::Sound);
  checkWide("%x = arith.maxsi %m64, %big : i64\n %y = arith.addi %n64, %huge : i64\n"
            "%z = arith.minsi %x, %y : i64\n %k = arith.cmpi slt, %z, %d64 : i64",
            Expect::Sound);
}

TEST(MaskTiles, StridesBesideNumbersBeyondAllPositions) {
  // Keys or rows of which there is one in four, from a captured number on: both axes, both sides,
  // powers of two and not.
  for (const char *stride : {"4", "5", "64"})
    for (const char *position : {"%n64", "%m64"}) {
      bool ofKeys = StringRef(position) == "%n64";
      std::string other = ofKeys ? "%m64" : "%n64";
      // Half of it, since a stride takes positions further: nothing may wrap.
      std::string there = "%two = arith.constant 2 : i64\n%far = arith.divsi %big, %two : "
                          "i64\n%stride = arith.constant " +
                          std::string(stride) + " : i64\n%s = arith.muli " + position +
                          ", %stride : i64\n%at = arith.addi %s, %far : i64\n";
      checkWide(there + "%k = arith.cmpi sle, %at, " + other + " : i64", Expect::Sound);
      checkWide(there + "%k = arith.cmpi sgt, %at, " + other + " : i64", Expect::Sound);
      checkWide(there + "%a = arith.cmpi sle, %at, " + other +
                    " : i64\n%w64 = arith.index_cast %w : index to i64\n%e = arith.addi %at, %w64 "
                    ": i64\n" +
                    "%f = arith.cmpi sge, %e, " + other + " : i64\n%k = arith.andi %a, %f : i1",
                Expect::Sound);
    }
  // Of 32 bits any stride is divided by.
  std::string there = "%c5 = arith.constant 5 : i64\n%off64 = arith.extsi %off32 : i32 to i64\n"
                      "%s = arith.muli %n64, %c5 : i64\n%at = arith.addi %s, %off64 : i64\n"
                      "%k = arith.cmpi sle, %at, %m64 : i64";
  checkWide(there, Expect::Sound);
  EXPECT_EQ(
      Mask(wide + there).tiles.describe(),
      "keeps n < (floor((m1 - s0 + 4) / 5) - 1) + 1; drops n >= -(floor((s0 - m0 + 4) / 5) - 1)");
  std::string byRank = "%c4 = arith.constant 4 : i64\n%s = arith.muli %n64, %c4 : i64\n"
                       "%at = arith.addi %s, %big : i64\n%k = arith.cmpi sle, %at, %m64 : i64";
  EXPECT_EQ(
      Mask(wide + byRank).tiles.describe(),
      "keeps n < (floor((m1 - s0 + 3) / 4) - 1) + 1; drops n >= -(floor((s0 - m0 + 3) / 4) - 1)");
}

TEST(MaskTiles, QuotientsOfNumbersBeyondAllPositions) {
  std::string there = "%c4 = arith.constant 4 : i64\n%s = arith.subi %m64, %big : i64\n"
                      "%at = arith.floordivsi %s, %c4 : i64\n";
  checkWide(there + "%k = arith.cmpi sle, %n64, %at : i64", Expect::Sound);
  checkWide(there + "%k = arith.cmpi sgt, %n64, %at : i64", Expect::Sound);
  EXPECT_EQ(
      Mask(wide + there + "%k = arith.cmpi sle, %n64, %at : i64").tiles.describe(),
      "keeps n < (floor((m1 - s0 + 3) / 4) - 1) + 1; drops n >= -(-floor((m0 - s0) / 4) - 1)");
}

TEST(MaskTiles, StridesSkipTiles) {
  // 4096 keys of which a row m sees those with 4 n + d <= m: of 1024 rows a quarter of 1024 keys.
  Mask mask(wide + "%c4 = arith.constant 4 : i64\n%s = arith.muli %n64, %c4 : i64\n"
                   "%at = arith.addi %s, %big : i64\n%k = arith.cmpi sle, %at, %m64 : i64");
  bound::Environment environment{.fixedBegin = 896, .fixedEnd = 1024, .numRunning = 4096};
  auto number = [](Value) -> int64_t { return 3; };
  environment.scalar = number;
  TileRanges<int64_t> ranges = mask.tiles.evaluateRanges(environment, 128);
  EXPECT_EQ(ranges.begin, 0);
  EXPECT_EQ(ranges.end, 256);
  EXPECT_EQ(ranges.fullEnd, 128);
}

TEST(MaskTiles, DivisorsBeyondAllPositions) {
  // A divisor is positive.
  std::string size = "%one = arith.constant 1 : i64\n%c1 = arith.maxsi %big, %one : i64\n"
                     "%x = arith.divui %m64, %c1 : i64\n%y = arith.divui %n64, %c1 : i64\n";
  checkWide(size + "%k = arith.cmpi eq, %x, %y : i64", Expect::Sound);
  checkWide(size + "%c5 = arith.constant 5 : i64\n%z = arith.addi %x, %c5 : i64\n"
                   "%k = arith.cmpi sle, %y, %z : i64",
            Expect::Sound);
}

TEST(MaskTiles, LargestDocuments) {
  std::string ids = "%i = tensor.extract %idq[%b, %m] : tensor<?x?xi32>\n"
                    "%j = tensor.extract %idk[%b, %n] : tensor<?x?xi32>\n";
  checkWide(ids + "%k = arith.cmpi eq, %i, %j : i32", Expect::ExactFull, /*facts=*/true);
  checkWide(ids + "%k = arith.cmpi sle, %j, %i : i32", Expect::Sound, /*facts=*/true);
  // Elements beside numbers, and beside positions.
  std::string longer = ids + "%i64 = arith.extsi %i : i32 to i64\n"
                             "%j64 = arith.extsi %j : i32 to i64\n";
  checkWide(longer + "%k = arith.cmpi sle, %j64, %big : i64", Expect::Sound, /*facts=*/true);
  checkWide(longer + "%k = arith.cmpi sgt, %i64, %big : i64", Expect::Sound, /*facts=*/true);
  checkWide(longer + "%l = arith.subi %j64, %m64 : i64\n%k = arith.cmpi sle, %l, %i64 : i64",
            Expect::Sound, /*facts=*/true);
  checkWide(longer + "%l = arith.subi %n64, %i64 : i64\n%k = arith.cmpi sge, %l, %big : i64",
            Expect::Sound, /*facts=*/true);
}

//===----------------------------------------------------------------------===//
// Random masks
//===----------------------------------------------------------------------===//

TEST(MaskTiles, RandomUnitConditionsAreExact) {
  for (int i = 0; i < kNumMasks / 2 && !HasFailure(); ++i) {
    MaskWriter writer(draw);
    std::string keep = writer.unitTree(random(1, 4));
    checkMask(writer.text + "%k = arith.andi " + keep + ", " + keep + " : i1", Expect::Exact, 20);
  }
}

TEST(MaskTiles, RandomMasksAreSound) {
  for (int i = 0; i < kNumMasks && !HasFailure(); ++i) {
    MaskWriter writer(draw);
    std::string keep = writer.boolean(random(0, 3));
    checkMask(writer.text + "%k = arith.andi " + keep + ", " + keep + " : i1", Expect::Sound, 6,
              random(0, 1));
  }
}
