//===- Launch.cpp - all kernels of a function, one after the other ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Launch.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace attn::sim {

Expected<Launch> Launch::create(mlir::ModuleOp module) {
  Launch launch;
  for (auto kernel : module.getOps<mlir::func::FuncOp>()) {
    if (!kernel->hasAttr(tile::TileDialect::kKernelAttrName))
      continue;
    Expected<Simulator> simulator = Simulator::create(kernel);
    if (!simulator)
      return simulator.takeError();
    launch.kernels.push_back(kernel);
    launch.simulators.push_back(std::move(*simulator));
  }
  if (launch.kernels.empty())
    return createStringError("expected a kernel to simulate, got none");
  return std::move(launch);
}

std::vector<Finding> Launch::getFindings() const {
  std::vector<Finding> findings;
  for (const Simulator &simulator : simulators)
    append_range(findings, simulator.getFindings());
  return findings;
}

std::string Launch::describe() const {
  if (simulators.size() == 1)
    return simulators.front().describe();
  std::string text;
  for (auto [kernel, simulator] : zip_equal(kernels, simulators))
    text += (text.empty() ? "@" : "; @") + mlir::func::FuncOp(kernel).getName().str() + ": " +
            simulator.describe();
  return text;
}

//===----------------------------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------------------------===//

/// The memory of a scratch argument, row-major and without data.
static Memory makeMemory(mlir::ArrayAttr sizes, ElementKind kind, ArrayRef<Argument> arguments) {
  Memory memory;
  memory.kind = kind;
  for (mlir::Attribute size : sizes) {
    auto extent = mlir::dyn_cast<tile::ExtentAttr>(size);
    memory.shape.push_back(
        extent ? divideCeil(arguments[extent.getArgument()].memory.shape[extent.getDim()],
                            extent.getDivisor())
               : mlir::cast<mlir::IntegerAttr>(size).getInt());
  }
  memory.strides.assign(memory.shape.size(), 1);
  for (size_t dim = memory.shape.size(); dim-- > 1;)
    memory.strides[dim - 1] = memory.strides[dim] * memory.shape[dim];
  return memory;
}

Expected<std::vector<Argument>> Launch::addScratch(ArrayRef<Argument> arguments) const {
  std::vector<Argument> all(arguments.begin(), arguments.end());
  for (mlir::func::FuncOp kernel : kernels)
    for (auto [index, type] : enumerate(kernel.getArgumentTypes())) {
      auto sizes =
          kernel.getArgAttrOfType<mlir::ArrayAttr>(index, tile::TileDialect::kScratchAttrName);
      if (!sizes)
        continue;
      if (index != all.size())
        return createStringError("expected argument " + Twine(all.size()) + " of @" +
                                 kernel.getName() + " as its next scratch, got " + Twine(index));
      mlir::Type element = mlir::cast<mlir::MemRefType>(type).getElementType();
      if (!element.isF32() && !element.isF16() && !element.isBF16())
        return createStringError("expected scratch of f32, f16 or bf16 in @" + kernel.getName());
      ElementKind kind = element.isF32()   ? ElementKind::F32
                         : element.isF16() ? ElementKind::F16
                                           : ElementKind::BF16;
      all.emplace_back().memory = makeMemory(sizes, kind, arguments);
    }
  return std::move(all);
}

//===----------------------------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------------------------===//

Expected<std::vector<Finding>> Launch::run(ArrayRef<Argument> arguments,
                                           const Options &options) const {
  Expected<std::vector<Argument>> all = addScratch(arguments);
  if (!all)
    return all.takeError();
  std::vector<Array> arrays;
  for (Argument &argument : MutableArrayRef(*all).drop_front(arguments.size())) {
    if (!options.numbers)
      break;
    Expected<Array> array = Array::allocate(argument.memory.kind, argument.memory.shape);
    if (!array)
      return array.takeError();
    array->poison();
    argument.memory.data = static_cast<char *>(arrays.emplace_back(std::move(*array)).data());
  }
  for (const Simulator &simulator : simulators) {
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
  std::vector<Prediction> predictions;
  for (const Simulator &simulator : simulators) {
    Expected<Prediction> prediction = simulator.predict(*all);
    if (!prediction)
      return prediction.takeError();
    predictions.push_back(*prediction);
  }
  return std::move(predictions);
}

} // namespace attn::sim
