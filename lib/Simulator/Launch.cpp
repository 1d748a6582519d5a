//===- Launch.cpp - all kernels of a function, one after the other ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Launch.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Support/ElementType.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn::sim {

Expected<Launch> Launch::create(mlir::ModuleOp module, std::optional<int64_t> multiprocessors) {
  Launch launch;
  for (auto kernel : module.getOps<mlir::func::FuncOp>()) {
    if (!kernel->hasAttr(tile::TileDialect::kKernelAttrName))
      continue;
    Expected<Simulator> simulator = Simulator::create(kernel, multiprocessors);
    if (!simulator)
      return simulator.takeError();
    launch.kernels.push_back(kernel);
    launch.simulators.push_back(std::move(*simulator));
  }
  if (launch.kernels.empty())
    return createStringError("expected a kernel to simulate, got none");
  if (launch.kernels.back()->hasAttr(plan::PlanDialect::kWhenAttrName))
    return createStringError("expected the last kernel to be for all calls, got @" +
                             launch.kernels.back().getName() + " for some");
  return std::move(launch);
}

std::vector<Finding> Launch::getFindings() const {
  std::vector<Finding> findings;
  for (const Simulator &simulator : simulators)
    append_range(findings, simulator.getFindings());
  return findings;
}

std::string Launch::describe(ArrayRef<Argument> arguments) const {
  Way way = choose(arguments);
  if (way.end - way.first == 1)
    return simulators[way.first].describe();
  std::string text;
  for (size_t index = way.first; index < way.end; ++index)
    text += (text.empty() ? "@" : "; @") + getKernel(index).getName().str() + ": " +
            simulators[index].describe();
  return text;
}

//===----------------------------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------------------------===//

/// The memory of a scratch argument, row-major and without data.
static Memory makeMemory(mlir::ArrayAttr sizes, ElementKind kind, ArrayRef<Argument> arguments,
                         int64_t multiprocessors) {
  Memory memory;
  memory.kind = kind;
  for (mlir::Attribute size : sizes)
    memory.shape.push_back(evaluateFactor(size, arguments, multiprocessors));
  memory.strides.assign(memory.shape.size(), 1);
  for (size_t dim = memory.shape.size(); dim-- > 1;)
    memory.strides[dim - 1] = memory.strides[dim] * memory.shape[dim];
  return memory;
}

/// The name of the way that a kernel is part of; null for that of most calls.
static mlir::Attribute getWay(mlir::func::FuncOp kernel) {
  return kernel->getAttr(plan::PlanDialect::kWayAttrName);
}

/// Whether a range of a call holds on a device with so many multiprocessors.
static bool holds(plan::RangeAttr range, mlir::func::FuncOp kernel, ArrayRef<Argument> arguments,
                  int64_t multiprocessors) {
  int64_t size = range.getParts() ? evaluateFactor(range.getParts(), arguments, multiprocessors)
                 : range.getDevice()
                     ? int64_t(plan::getMachine(kernel).chips.front().memoryTBs * 1000)
                     : arguments[range.getArgument()].memory.shape[range.getDim()];
  if (range.getPer()) {
    int64_t per = evaluateFactor(range.getPer(), arguments, 0);
    size = per > 0 ? divideCeil(size, per) : 0;
  }
  return range.getLeast() <= size && size <= range.getMost();
}

Launch::Way Launch::choose(ArrayRef<Argument> arguments) const {
  Way way{0, kernels.size()};
  for (size_t first = 0; first < kernels.size(); first = way.end) {
    mlir::func::FuncOp kernel = kernels[first];
    way = {first, first};
    while (way.end < kernels.size() && getWay(kernels[way.end]) == getWay(kernel))
      ++way.end;
    auto when = kernel->getAttrOfType<mlir::ArrayAttr>(plan::PlanDialect::kWhenAttrName);
    int64_t multiprocessors = simulators[first].getMultiprocessors();
    if (!when || any_of(when.getAsRange<mlir::ArrayAttr>(), [&](mlir::ArrayAttr ranges) {
          return all_of(ranges.getAsRange<plan::RangeAttr>(), [&](plan::RangeAttr range) {
            return holds(range, kernel, arguments, multiprocessors);
          });
        }))
      return way;
  }
  return way;
}

Expected<std::vector<Argument>> Launch::addScratch(ArrayRef<Argument> arguments) const {
  std::vector<Argument> all(arguments.begin(), arguments.end());
  Way way = choose(arguments);
  for (mlir::func::FuncOp kernel : ArrayRef(kernels).slice(way.first, way.end - way.first))
    for (auto [index, type] : enumerate(kernel.getArgumentTypes())) {
      auto sizes =
          kernel.getArgAttrOfType<mlir::ArrayAttr>(index, tile::TileDialect::kScratchAttrName);
      if (!sizes)
        continue;
      if (index != all.size())
        return createStringError("expected argument " + Twine(all.size()) + " of @" +
                                 kernel.getName() + " as its next scratch, got " + Twine(index));
      mlir::Type element = mlir::cast<mlir::MemRefType>(type).getElementType();
      std::optional<ElementKind> kind = getElementKind(element);
      if (!kind)
        return createStringError(
            formatv("expected scratch of numbers that arrays hold in @{0}, got {1}",
                    kernel.getName(), element));
      all.emplace_back().memory =
          makeMemory(sizes, *kind, arguments, simulators.front().getMultiprocessors());
    }
  return std::move(all);
}

/// Whether an argument of the kernels is scratch that starts as zeros.
static bool isZeroed(ArrayRef<mlir::func::FuncOp> kernels, unsigned index) {
  return any_of(kernels, [&](mlir::func::FuncOp kernel) {
    return index < kernel.getNumArguments() &&
           kernel.getArgAttr(index, tile::TileDialect::kZeroedAttrName);
  });
}

/// Whether a kernel searches, and knows floats by their shapes alone.
static bool searchesAlone(mlir::func::FuncOp kernel) {
  bool readsFloats = any_of(kernel.getArguments(), [](mlir::BlockArgument argument) {
    auto type = mlir::dyn_cast<mlir::MemRefType>(argument.getType());
    return type && mlir::isa<mlir::FloatType>(type.getElementType()) &&
           !all_of(argument.getUsers(),
                   [](mlir::Operation *user) { return mlir::isa<mlir::memref::DimOp>(user); });
  });
  return !readsFloats &&
         kernel.walk([](mlir::scf::WhileOp) { return mlir::WalkResult::interrupt(); })
             .wasInterrupted();
}

Expected<std::vector<Array>> Launch::search(ArrayRef<Argument> arguments,
                                            MutableArrayRef<Argument> all) const {
  Way way = choose(arguments);
  std::vector<Array> arrays;
  for (size_t number = way.first; number < way.end; ++number) {
    mlir::func::FuncOp kernel = kernels[number];
    if (!searchesAlone(kernel))
      continue;
    for (size_t index = arguments.size(); index < kernel.getNumArguments(); ++index) {
      Memory &memory = all[index].memory;
      if (memory.data || kernel.getArgument(index).use_empty())
        continue;
      Expected<Array> array = Array::allocate(memory.kind, memory.shape);
      if (!array)
        return array.takeError();
      memory.data = static_cast<char *>(arrays.emplace_back(std::move(*array)).data());
    }
    Expected<std::vector<Finding>> findings = simulators[number].run(all, Options());
    if (!findings)
      return findings.takeError();
  }
  return std::move(arrays);
}

//===----------------------------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------------------------===//

Expected<std::vector<Finding>> Launch::run(ArrayRef<Argument> arguments,
                                           const Options &options) const {
  Expected<std::vector<Argument>> all = addScratch(arguments);
  if (!all)
    return all.takeError();
  Way way = choose(arguments);
  std::vector<Array> arrays;
  for (size_t index = arguments.size(); index < all->size() && options.numbers; ++index) {
    Memory &memory = (*all)[index].memory;
    Expected<Array> array = Array::allocate(memory.kind, memory.shape);
    if (!array)
      return array.takeError();
    if (!isZeroed(ArrayRef(kernels).slice(way.first, way.end - way.first), index))
      array->poison();
    memory.data = static_cast<char *>(arrays.emplace_back(std::move(*array)).data());
  }
  for (const Simulator &simulator : getSimulators().slice(way.first, way.end - way.first)) {
    Expected<std::vector<Finding>> findings = simulator.run(*all, options);
    if (!findings || !findings->empty())
      return findings;
  }
  return std::vector<Finding>();
}

Expected<std::vector<Prediction>> Launch::predict(ArrayRef<Argument> arguments) const {
  Expected<std::vector<Argument>> all = addScratch(arguments);
  if (!all)
    return all.takeError();
  Expected<std::vector<Array>> found = search(arguments, *all);
  if (!found)
    return found.takeError();
  Way way = choose(arguments);
  std::vector<Prediction> predictions;
  for (const Simulator &simulator : getSimulators().slice(way.first, way.end - way.first)) {
    Expected<Prediction> prediction = simulator.predict(*all);
    if (!prediction)
      return prediction.takeError();
    predictions.push_back(*prediction);
  }
  return std::move(predictions);
}

} // namespace attn::sim
