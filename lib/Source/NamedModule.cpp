//===- NamedModule.cpp - a parsed text and the names in it ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Source/NamedModule.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace attn {

static std::string getNameAt(SMRange range) {
  if (!range.isValid())
    return "";
  StringRef text(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  text = text.split('#').first;
  return text.empty() || isDigit(text.front()) ? "" : text.str();
}

std::string NamedModule::getName(mlir::Value value) const {
  if (auto argument = dyn_cast<mlir::BlockArgument>(value)) {
    const auto *block = state->getBlockDef(argument.getOwner());
    if (!block || argument.getArgNumber() >= block->arguments.size())
      return "";
    return getNameAt(block->arguments[argument.getArgNumber()].loc);
  }
  auto result = cast<mlir::OpResult>(value);
  if (const auto *definition = state->getOpDef(result.getOwner()))
    for (const auto &group : definition->resultGroups)
      if (group.startIndex == result.getResultNumber())
        return getNameAt(group.definition.loc);
  return "";
}

Expected<NamedModule> parseNamed(mlir::MLIRContext &context, const SourceMgr &text,
                                 StringRef path) {
  NamedModule parsed{
      mlir::ModuleOp::create(mlir::FileLineColLoc::get(&context, path, /*line=*/0, /*column=*/0)),
      std::make_unique<mlir::AsmParserState>()};
  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  mlir::Block *block = parsed.module->getBody();
  if (failed(mlir::parseAsmSourceFile(text, block, config, parsed.state.get())))
    return createStringError("expected IR that parses");
  // Printed IR often starts with `module {`; a parsed module inside of ours then takes its place.
  if (hasSingleElement(*block))
    if (auto inner = dyn_cast<mlir::ModuleOp>(block->front())) {
      inner->remove();
      parsed.module = inner;
    }
  if (failed(mlir::verify(*parsed.module)))
    return createStringError("expected IR that verifies");
  return std::move(parsed);
}

} // namespace attn
