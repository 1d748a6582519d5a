//===- SimulatePass.cpp - tile-simulate -------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Interpreter/ScalarOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Simulator/Passes.h"
#include "lib/Simulator/Simulator.h"
#include "lib/Support/ElementType.h"
#include "lib/Support/Random.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn::sim {
#define GEN_PASS_DEF_SIMULATEPASS
#include "lib/Simulator/Passes.h.inc"
} // namespace attn::sim

using namespace llvm;
using namespace attn;

namespace {
/// Arguments for one kernel, and their memory.
struct MadeUp {
  std::vector<Array> arrays;
  std::vector<sim::Argument> arguments;
};

struct SimulatePass : RoomPass<sim::impl::SimulatePassBase<SimulatePass>, within(Room::Async),
                               within(Room::Async)> {
  using RoomPass::RoomPass;

  Expected<MadeUp> makeArguments(mlir::func::FuncOp kernel) {
    MadeUp made;
    size_t shape = 0, scalar = 0;
    made.arrays.reserve(kernel.getNumArguments());
    for (auto [index, type] : enumerate(kernel.getArgumentTypes())) {
      auto memref = mlir::dyn_cast<mlir::MemRefType>(type);
      if (!memref) {
        double value = scalar < scalars.size() ? scalars[scalar] : 1;
        ++scalar;
        sim::Argument &argument = made.arguments.emplace_back();
        argument.isScalar = true;
        if (mlir::isa<mlir::FloatType>(type))
          argument.scalar.f = value;
        else
          argument.scalar.i = int64_t(value);
        continue;
      }
      if (shape == shapes.size())
        return makeOpError(kernel, "expected a shape for argument " + Twine(index) + ", got " +
                                       Twine(shapes.size()) + " shapes");
      SmallVector<int64_t> extents;
      SmallVector<StringRef> parts;
      StringRef(shapes[shape++]).split(parts, 'x');
      for (StringRef part : parts)
        if (part.getAsInteger(10, extents.emplace_back()))
          return makeOpError(kernel, "expected extents like 1x2x256x64, got '" + Twine(part) + "'");
      std::optional<ElementKind> kind = getElementKind(memref.getElementType());
      if (!kind)
        return makeOpError(kernel, formatv("expected memory of numbers that arrays hold, got {0}",
                                           memref.getElementType()));
      Expected<Array> array = Array::allocate(*kind, extents);
      if (!array)
        return array.takeError();
      if (isFloat(*kind))
        fillNormal(*array, index + 1);
      made.arguments.push_back(sim::Argument::of(made.arrays.emplace_back(std::move(*array))));
    }
    return std::move(made);
  }

  int64_t getBlockWork() const {
    int64_t most = sim::Options().maxWork;
    return maxWork > 0 ? std::min<int64_t>(maxWork, most) : most;
  }

  Error writeTimeline(const sim::Simulator &simulator, ArrayRef<sim::Argument> arguments) {
    Expected<sim::Prediction> prediction = simulator.predict(arguments, getBlockWork());
    if (!prediction)
      return prediction.takeError();
    sim::Timeline picture;
    picture.clockGHz = simulator.getChip().clockGHz;
    sim::Options options;
    options.numbers = false;
    options.timeline = &picture;
    options.maxWork = getBlockWork();
    Expected<sim::BlockResult> result = simulator.runBlock(arguments, options, prediction->longest);
    if (!result)
      return result.takeError();
    return picture.write(timeline);
  }

  Error simulate(mlir::func::FuncOp kernel, bool &isWrong) {
    Expected<sim::Simulator> simulator = sim::Simulator::create(kernel);
    if (!simulator)
      return simulator.takeError();
    std::vector<sim::Finding> findings = simulator->getFindings();
    Expected<MadeUp> made = makeArguments(kernel);
    if (!made)
      return made.takeError();
    for (unsigned seed = 0; seed < seeds && findings.empty(); ++seed) {
      sim::Options options;
      options.seed = firstSeed + seed;
      options.numbers = numbers && seed == 0;
      if (maxWork > 0)
        options.maxGridWork = maxWork;
      Expected<std::vector<sim::Finding>> found = simulator->run(made->arguments, options);
      if (!found)
        return found.takeError();
      findings = std::move(*found);
    }
    for (const sim::Finding &finding : findings)
      finding.emit();
    isWrong |= !findings.empty();
    if (isWrong)
      return Error::success();
    if (predict) {
      Expected<sim::Prediction> prediction = simulator->predict(made->arguments, getBlockWork());
      if (!prediction)
        return prediction.takeError();
      mlir::emitRemark(kernel.getLoc())
          << formatv("predicted {0:F3} ms, {1:F1}% of peak, critical: {2}",
                     prediction->milliseconds, 100 * prediction->fractionOfPeak,
                     sim::getName(prediction->critical))
                 .str();
    }
    return timeline.empty() ? Error::success() : writeTimeline(*simulator, made->arguments);
  }

  LogicalResult transform() override {
    bool isWrong = false;
    for (auto kernel : getOperation().getOps<mlir::func::FuncOp>())
      if (kernel->hasAttr(tile::TileDialect::kKernelAttrName))
        if (Error error = simulate(kernel, isWrong)) {
          kernel.emitError() << toString(std::move(error));
          isWrong = true;
        }
    if (isWrong)
      return failure();
    return success();
  }
};
} // namespace
