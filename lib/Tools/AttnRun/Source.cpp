//===- Source.cpp - the function to run and its names -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Source.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Source/NamedModule.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

namespace attn {

static std::string makeUnique(StringRef wanted, ArrayRef<ValueFacts> others) {
  std::string name = wanted.str();
  auto isTaken = [&] { return any_of(others, [&](auto &other) { return other.name == name; }); };
  for (unsigned i = 1; isTaken(); ++i)
    name = (wanted + "_" + Twine(i)).str();
  return name;
}

static ValueFacts describe(StringRef ssaName, const Twine &fallback, mlir::DictionaryAttr attrs,
                           ArrayRef<ValueFacts> others) {
  ValueFacts facts;
  std::string name = ssaName.empty() ? fallback.str() : ssaName.str();
  if (attrs) {
    if (auto given = attrs.getAs<mlir::StringAttr>("attn.name"))
      name = given.str();
    facts.isSorted = attrs.contains("attn.sorted");
  }
  facts.name = makeUnique(name, others);
  return facts;
}

static void describeAll(mlir::func::FuncOp function, const NamedModule &named, Source &source) {
  for (auto [index, argument] : enumerate(function.getArguments()))
    source.arguments.push_back(describe(named.getName(argument), "arg" + Twine(index),
                                        function.getArgAttrDict(index), source.arguments));
  mlir::Operation *terminator = function.getBody().back().getTerminator();
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    std::string name;
    if (index < terminator->getNumOperands())
      name = named.getName(terminator->getOperand(index));
    source.results.push_back(
        describe(name, "out" + Twine(index), function.getResultAttrDict(index), source.results));
  }
}

/// Reads a file, refusing what would block (a terminal, a pipe without writer) or be endless.
static Expected<std::unique_ptr<MemoryBuffer>> readText(StringRef path) {
  if (path != "-") {
    sys::fs::file_status status;
    std::error_code code = sys::fs::status(path, status);
    if (code)
      return createStringError("'" + path + "': expected a readable file, got: " + code.message());
    if (status.type() == sys::fs::file_type::directory_file)
      return createStringError("'" + path + "': expected a file, got a directory");
    if (status.type() != sys::fs::file_type::regular_file &&
        status.type() != sys::fs::file_type::fifo_file)
      return createStringError("'" + path + "': expected a regular file, got a device");
  }
  auto buffer = MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!buffer)
    return createStringError("'" + path +
                             "': expected a readable file, got: " + buffer.getError().message());
  return std::move(*buffer);
}

Expected<Source> readSource(mlir::MLIRContext &context, StringRef path, StringRef entry,
                            bool withGradients) {
  Expected<std::unique_ptr<MemoryBuffer>> buffer = readText(path);
  if (!buffer)
    return buffer.takeError();
  return parseSource(context, std::move(*buffer), path, entry, withGradients);
}

Expected<Source> parseSource(mlir::MLIRContext &context, std::unique_ptr<MemoryBuffer> buffer,
                             StringRef path, StringRef entry, bool withGradients) {
  auto manager = std::make_shared<SourceMgr>();
  manager->AddNewSourceBuffer(std::move(buffer), SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*manager, &context);

  Expected<NamedModule> named = parseNamed(context, *manager, path);
  if (!named)
    return createStringError("'" + path + "': " + toString(named.takeError()) +
                             ", got the errors above");
  Source source;
  source.module = std::move(named->module);
  if (withGradients) {
    mlir::PassManager passes(&context);
    passes.addPass(createAppendGradientsPass());
    if (failed(passes.run(*source.module)))
      return createStringError("'" + path +
                               "': expected a function that has gradients, got the errors above");
  }

  Expected<mlir::func::FuncOp> function = findEntry(*source.module, entry);
  if (!function)
    return createStringError("'" + path + "': " + toString(function.takeError()));
  Expected<KernelSignature> signature = getSignature(*function);
  if (!signature)
    return createStringError("'" + path + "': " + toString(signature.takeError()));
  source.signature = std::move(*signature);
  describeAll(*function, *named, source);
  source.extents = findExtents(*function);
  size_t next = 0;
  for (auto *values : {&source.arguments, &source.results})
    for (ValueFacts &facts : *values)
      facts.dims = source.extents.values[next++];
  function->walk([&](AssumeOp op) {
    mlir::Value value = op.getSource();
    while (auto cast = value.getDefiningOp<mlir::tensor::CastOp>())
      value = cast.getSource();
    if (auto argument = dyn_cast<mlir::BlockArgument>(value);
        argument && argument.getOwner() == &function->getBody().front())
      source.arguments[argument.getArgNumber()].isSorted = true;
  });
  return source;
}

} // namespace attn
