//===- PersistBlocksTest.cpp - blocks that stay run every block of a grid once ----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Launch.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "test/Simulator/Lowered.h"
#include "gtest/gtest.h"

using namespace attn;

/// Each block adds one to 64 elements of its own, in a loop that runs once whatever x is, which the
/// pass may know or not.
static std::string makeSource(bool isUneven, int64_t tail) {
  std::string bound = isUneven ? "arith.addi %x, %c1 : index" : "arith.constant 1 : index";
  return R"(
#grid = [[#plan.extent<argument = 0, dim = 2, divisor = 64>], [#plan.extent<argument = 0, dim = 1>],
         [#plan.extent<argument = 0, dim = 0>]]
func.func @count(%o: memref<?x?x?xf32>)
    attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = #grid, schedule = <stay = true, tail = )" +
         std::to_string(tail) + R"(>>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %far = arith.constant 1000 : index
  %x = gpu.block_id x
  %y = gpu.block_id y
  %z = gpu.block_id z
  %at = arith.muli %x, %c64 : index
  %ones = arith.constant dense<1.0> : tensor<64xf32>
  %end = )" +
         bound +
         R"(
  scf.for %i = %c0 to %end step %far {
    %before = tile.load %o[%z, %y, %at] : memref<?x?x?xf32> -> tensor<64xf32>
    %after = arith.addf %before, %ones : tensor<64xf32>
    tile.store %after to %o[%z, %y, %at] : tensor<64xf32>, memref<?x?x?xf32>
  }
  return
}
)";
}

/// How often each element was written, on a device of so many multiprocessors.
static void expectOnce(mlir::ModuleOp module, int64_t multiprocessors,
                       llvm::ArrayRef<int64_t> shape) {
  SCOPED_TRACE(testing::Message() << multiprocessors << " blocks for " << shape[0] << "x"
                                  << shape[1] << "x" << shape[2]);
  auto launch = sim::Launch::create(module, multiprocessors);
  ASSERT_TRUE(bool(launch)) << llvm::toString(launch.takeError());
  Array counts = llvm::cantFail(Array::allocate(ElementKind::F32, shape));
  std::fill_n(counts.dataAs<float>(), counts.size(), 0.0f);
  auto findings = launch->run({sim::Argument::of(counts)}, sim::Options());
  ASSERT_TRUE(bool(findings)) << llvm::toString(findings.takeError());
  ASSERT_TRUE(findings->empty());
  for (int64_t i = 0; i < counts.size(); ++i)
    ASSERT_EQ(counts.dataAs<float>()[i], 1.0f) << "element " << i;
}

static void expectEveryPieceOnce(bool isUneven, int64_t tail = 0) {
  SCOPED_TRACE(testing::Message() << "tail " << tail);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(makeSource(isUneven, tail), &test::getContext());
  ASSERT_TRUE(module);
  mlir::PassManager pm(&test::getContext());
  pm.addPass(tile::createPersistBlocksPass());
  ASSERT_TRUE(mlir::succeeded(pm.run(*module)));
  for (int64_t multiprocessors : {1, 2, 3, 5, 8, 13})
    for (int64_t batch : {0, 1, 3})
      for (int64_t heads : {1, 2, 7})
        for (int64_t rows : {0, 1, 64, 130, 200, 640, 1024, 1345}) {
          expectOnce(*module, multiprocessors, {batch, heads, rows});
          if (testing::Test::HasFatalFailure())
            return;
        }
}

TEST(PersistBlocks, EveryPieceRunsOnce) { expectEveryPieceOnce(/*isUneven=*/false); }
TEST(PersistBlocks, EveryPieceOfPairsRunsOnce) { expectEveryPieceOnce(/*isUneven=*/true); }

// Nothing waits for blocks that come before: the simulator starts them in any order.
TEST(PersistBlocks, EveryPieceRunsOnceWithATail) {
  for (int64_t tail : {1, 2, 3})
    expectEveryPieceOnce(/*isUneven=*/true, tail);
}
// Where pieces are even there is none.
TEST(PersistBlocks, NoTailOfEvenPieces) { expectEveryPieceOnce(/*isUneven=*/false, /*tail=*/2); }
