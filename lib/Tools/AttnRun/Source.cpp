//===- Source.cpp - the function to run and its names -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Source.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

namespace attn {

/// "%q" in the text gives "q"; numbers are no names.
static std::string getNameAt(SMRange range) {
  if (!range.isValid())
    return "";
  StringRef text(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  text = text.split('#').first;
  return text.empty() || isDigit(text.front()) ? "" : text.str();
}

static std::string getSSAName(mlir::Value value, const mlir::AsmParserState &state) {
  if (auto argument = dyn_cast<mlir::BlockArgument>(value)) {
    const auto *block = state.getBlockDef(argument.getOwner());
    if (!block || argument.getArgNumber() >= block->arguments.size())
      return "";
    return getNameAt(block->arguments[argument.getArgNumber()].loc);
  }
  auto result = cast<mlir::OpResult>(value);
  const auto *definition = state.getOpDef(result.getOwner());
  if (!definition)
    return "";
  // A group %r:2 names two results at once, and then neither.
  for (const auto &group : definition->resultGroups)
    if (group.startIndex == result.getResultNumber())
      return getNameAt(group.definition.loc);
  return "";
}

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

static void describeAll(mlir::func::FuncOp function, const mlir::AsmParserState &state,
                        Source &source) {
  for (auto [index, type] : enumerate(source.signature.arguments))
    source.arguments.push_back(describe(getSSAName(function.getArgument(index), state),
                                        "arg" + Twine(index), function.getArgAttrDict(index),
                                        source.arguments));
  mlir::Operation *terminator = function.getBody().back().getTerminator();
  for (auto [index, type] : enumerate(source.signature.results)) {
    std::string name;
    if (index < terminator->getNumOperands())
      name = getSSAName(terminator->getOperand(index), state);
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
  auto manager = std::make_shared<SourceMgr>();
  manager->AddNewSourceBuffer(std::move(*buffer), SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*manager, &context);

  Source source;
  // The parser's record for editors is the only place that keeps the names of values.
  mlir::AsmParserState state;
  source.module =
      mlir::ModuleOp::create(mlir::FileLineColLoc::get(&context, path, /*line=*/0, /*column=*/0));
  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  mlir::Block *block = source.module->getBody();
  if (failed(mlir::parseAsmSourceFile(*manager, block, config, &state)))
    return createStringError("'" + path + "': expected a module that parses, got the errors above");
  // A file that writes its module out leaves one inside ours.
  if (hasSingleElement(*block))
    if (auto inner = dyn_cast<mlir::ModuleOp>(block->front())) {
      inner->remove();
      source.module = inner;
    }
  if (failed(mlir::verify(*source.module)))
    return createStringError("'" + path + "': expected a valid module, got the errors above");
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
  describeAll(*function, state, source);
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
