//===- NamedModule.h - a parsed text and the names in it --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SOURCE_NAMEDMODULE_H
#define ATTN_LIB_SOURCE_NAMEDMODULE_H

#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>

namespace attn {

struct NamedModule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Data that the parser keeps for editors: the only place that has the names of values. Points
  /// into the text.
  std::unique_ptr<mlir::AsmParserState> state;

  /// "%q" in the text gives "q". Numbers are no names, nor are the numbers of a group, "%r:2".
  std::string getName(mlir::Value value) const;
};

/// Parses and verifies the first buffer of `text`, whose name is `path`. The context's diagnostics
/// say what is wrong with it.
llvm::Expected<NamedModule> parseNamed(mlir::MLIRContext &context, const llvm::SourceMgr &text,
                                       llvm::StringRef path);

} // namespace attn

#endif // ATTN_LIB_SOURCE_NAMEDMODULE_H
