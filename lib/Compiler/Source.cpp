//===- Source.cpp - parsing what is to be compiled ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Function.h"
#include "lib/Source/NamedModule.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

namespace attn {

Result<ParsedSource> parseSource(mlir::MLIRContext &context, std::string_view source,
                                 const CompileOptions &options) {
  DiagnosticCollector diagnostics(context);
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(StringRef(source), "source"), SMLoc());
  Expected<NamedModule> named = parseNamed(context, sources, "source");
  if (!named)
    return diagnostics.fail(named.takeError());
  ParsedSource parsed;
  parsed.module = std::move(named->module);
  Expected<mlir::func::FuncOp> entry = findEntry(*parsed.module, options.entry);
  if (!entry)
    return Status{StatusCode::InvalidKernel, "source: " + toString(entry.takeError()), ""};
  parsed.entry = *entry;
  for (mlir::BlockArgument argument : parsed.entry.getArguments()) {
    std::string name = named->getName(argument);
    parsed.argumentNames.push_back(
        name.empty() ? ("argument " + Twine(argument.getArgNumber())).str() : name);
  }
  parsed.extents = findExtents(parsed.entry);
  if (mlir::Operation *unknown = parsed.extents.unknown) {
    unknown->emitOpError(parsed.extents.reason);
    return diagnostics.fail("expected a function whose calls can be checked");
  }
  return parsed;
}

} // namespace attn
