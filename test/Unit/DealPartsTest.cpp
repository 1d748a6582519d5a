//===- DealPartsTest.cpp - parts that sequences get by their lengths --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Runs the grids in front of an attention alone: whatever the lengths, each key of a sequence is in
// one part, each part has one slot, and slots of a sequence follow one another.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Plan/KernelPlan.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace attn;

/// A step of decoding with eight query heads for each of two key heads.
static constexpr int64_t kKeyHeads = 2, kMultiprocessors = 132, kMostParts = 64;
static const char kSource[] = R"mlir(
!q = tensor<?x?x?x128xbf16>
func.func @f(%q: !q, %k: !q, %v: !q, %lengths: tensor<?xi32>) -> !q {
  %o = attn.attention %q, %k, %v variants [#attn.key_length] captures(%lengths : tensor<?xi32>) : !q, !q, !q -> !q
  return %o : !q
}
)mlir";

namespace {
class DealPartsTest : public testing::Test {
protected:
  DealPartsTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<AttnDialect, affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                        gpu::GPUDialect, linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                        tensor::TensorDialect>();
  }
  void SetUp() override;
  void check(llvm::ArrayRef<int64_t> lengths, int64_t keys);

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  int64_t blockN = 0;
};
} // namespace

/// The way of packed rows returns what grids have dealt, and takes the number of slots.
void DealPartsTest::SetUp() {
  module = parseSourceString<ModuleOp>(kSource, &context, "deal.mlir");
  ASSERT_TRUE(module);
  PipelineOptions options;
  options.target = "cuda";
  options.pack = 8;
  ASSERT_TRUE(succeeded(options.parseFromString("target=cuda pack=8 balance=true")));
  PassManager pm(&context);
  buildPipeline(pm, options, Room::Online);
  ASSERT_TRUE(succeeded(pm.run(*module)));
  function = module->lookupSymbol<func::FuncOp>("f_packed");
  ASSERT_TRUE(function);
  CountPartsOp slots;
  scf::ForallOp deal;
  function.walk([&](CountPartsOp op) { slots = op; });
  function.walk([&](scf::ForallOp op) {
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (type.getElementType().isInteger(32) && type.getDimSize(3) == 4)
      deal = op;
  });
  function.walk([&](OnlineAttentionOp op) {
    blockN = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName)->blockN;
  });
  ASSERT_TRUE(slots && deal && blockN > 0);
  (void)function.insertArgument(function.getNumArguments(), IndexType::get(&context), {},
                                function.getLoc());
  slots.getResult().replaceAllUsesWith(function.getArguments().back());
  Operation *end = function.getBody().front().getTerminator();
  end->setOperands(deal.getResults());
  function.setFunctionType(
      FunctionType::get(&context, function.getArgumentTypes(), deal.getResultTypes()));
  // The interpreter has no packed heads. Their batches are the query's.
  function.walk([](tensor::DimOp dim) {
    if (auto pack = dim.getSource().getDefiningOp<PackHeadsOp>())
      dim.getSourceMutable().assign(pack.getSource());
  });
  PassManager clean(&context);
  clean.addPass(createCanonicalizerPass());
  ASSERT_TRUE(succeeded(clean.run(*module)));
}

static RuntimeValue makeShape(std::vector<int64_t> shape) {
  return llvm::cantFail(DenseTensor::create(shape, /*isFloat=*/true, /*hasData=*/false));
}

void DealPartsTest::check(llvm::ArrayRef<int64_t> lengths, int64_t keys) {
  auto sequences = int64_t(lengths.size());
  int64_t most = llvm::divideCeil(keys, blockN * 4),
          count = countSlots(sequences, sequences * kKeyHeads, kMultiprocessors,
                             std::min(most, kMostParts));
  TensorRef given = llvm::cantFail(DenseTensor::create({sequences}, /*isFloat=*/false));
  for (auto [i, length] : llvm::enumerate(lengths))
    given->data()[i].i = length;
  RuntimeValue cache = makeShape({sequences, kKeyHeads, keys, 128});
  llvm::Expected<InterpreterResult> result =
      interpret(function, {makeShape({sequences, 16, 1, 128}), cache, cache, given,
                           RuntimeValue::integer(count)});
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  const Lane *ofSlots = result->values[0].getTensor()->data(),
             *ofSequences = result->values[1].getTensor()->data();
  std::vector<bool> isTaken(count);
  for (int64_t b = 0; b < sequences; ++b) {
    int64_t live = std::clamp<int64_t>(lengths[b], 0, keys), next = 0;
    int64_t first = ofSequences[2 * b].i, parts = ofSequences[2 * b + 1].i;
    ASSERT_TRUE(first >= 0 && parts >= 1 && first + parts <= count) << b;
    for (int64_t part = 0; part < parts; ++part) {
      const Lane *slot = ofSlots + 4 * (first + part);
      ASSERT_FALSE(isTaken[first + part]);
      isTaken[first + part] = true;
      ASSERT_EQ(slot[0].i, b);
      ASSERT_EQ(slot[1].i, part);
      ASSERT_EQ(slot[2].i, next);
      ASSERT_TRUE(slot[3].i > 0 || live == 0) << b;
      ASSERT_EQ(slot[2].i % blockN, 0);
      next += slot[3].i;
    }
    ASSERT_EQ(next, live) << b;
  }
  for (int64_t slot = 0; slot < count; ++slot)
    if (!isTaken[slot])
      ASSERT_EQ(ofSlots[4 * slot + 3].i, 0) << slot;
}

TEST_F(DealPartsTest, OneSequence) {
  for (int64_t length : {0, 1, 79, 80, 81, 8192, 131072, 200000, -7})
    check({length}, 131072);
  check({5}, 1);
}

TEST_F(DealPartsTest, GroupsOfSequences) {
  std::mt19937_64 random(1);
  for (size_t sequences : {2, 15, 16, 17, 64, 100, 257})
    for (int64_t keys : {100, 5000, 100000}) {
      // Of any lengths, of one length, of one long sequence, of none.
      for (int kind = 0; kind < 5; ++kind) {
        std::vector<int64_t> lengths(sequences, kind == 1 ? keys : kind == 2 ? 50 : 0);
        for (int64_t &length : lengths)
          if (kind == 0)
            length = std::uniform_int_distribution<int64_t>(-3, keys + 3)(random);
          else if (kind == 3)
            length = int64_t(std::exp(std::uniform_real_distribution<>(0, std::log(keys))(random)));
        if (kind == 2)
          lengths[random() % sequences] = keys;
        check(lengths, keys);
      }
    }
}
