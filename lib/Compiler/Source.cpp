//===- Source.cpp - parsing what is to be compiled ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Function.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

namespace attn {

/// "%q" in the text gives "q"; an argument without a name of its own gives "argument 2".
static std::string getName(mlir::BlockArgument argument, const mlir::AsmParserState &state) {
  std::string fallback = ("argument " + Twine(argument.getArgNumber())).str();
  const auto *block = state.getBlockDef(argument.getOwner());
  if (!block || argument.getArgNumber() >= block->arguments.size())
    return fallback;
  SMRange range = block->arguments[argument.getArgNumber()].loc;
  if (!range.isValid())
    return fallback;
  StringRef text(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  return text.empty() || isDigit(text.front()) ? fallback : text.str();
}

Result<ParsedSource> parseSource(mlir::MLIRContext &context, std::string_view source,
                                 const CompileOptions &options) {
  DiagnosticCollector diagnostics(context);
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(StringRef(source), "source"), SMLoc());
  ParsedSource parsed;
  parsed.module = mlir::ModuleOp::create(
      mlir::FileLineColLoc::get(&context, "source", /*line=*/0, /*column=*/0));
  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  mlir::AsmParserState state;
  // Printed IR often starts with `module {`; a parsed module inside of ours then takes its place.
  if (failed(mlir::parseAsmSourceFile(sources, parsed.module->getBody(), config, &state)))
    return diagnostics.fail("expected IR that parses");
  auto inner = to_vector(parsed.module->getOps<mlir::ModuleOp>());
  if (inner.size() == 1 && hasSingleElement(*parsed.module->getBody())) {
    inner.front()->remove();
    parsed.module = inner.front();
  }
  if (failed(mlir::verify(*parsed.module)))
    return diagnostics.fail("expected IR that verifies");

  Expected<mlir::func::FuncOp> entry = findEntry(*parsed.module, options.entry);
  if (!entry)
    return Status{StatusCode::InvalidKernel, "source: " + toString(entry.takeError()), ""};
  parsed.entry = *entry;
  for (mlir::BlockArgument argument : parsed.entry.getArguments())
    parsed.argumentNames.push_back(getName(argument, state));
  parsed.extents = findExtents(parsed.entry);
  if (mlir::Operation *unknown = parsed.extents.unknown) {
    unknown->emitOpError(parsed.extents.reason);
    return diagnostics.fail("expected a function whose calls can be checked");
  }
  return parsed;
}

} // namespace attn
