//===- Explain.h - running the rooms while listening ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_COMPILER_EXPLAIN_H
#define ATTN_COMPILER_EXPLAIN_H

#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Function.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

namespace attn {

/// A source on its way through passes, and what they remark.
class Explainer {
public:
  Explainer();

  /// The entry that the options name; once.
  Status parse(std::string_view source, const CompileOptions &options);
  Status run(llvm::function_ref<void(mlir::OpPassManager &)> build);

  mlir::ModuleOp getModule() { return *parsed.module; }
  const std::vector<std::string> &getRemarks() const { return diagnostics->getRemarks(); }

private:
  // In the order in which they need each other.
  mlir::DialectRegistry registry;
  std::optional<mlir::MLIRContext> context;
  ParsedSource parsed;
  std::optional<DiagnosticCollector> diagnostics;
};

/// A remark of MLIR as a comment, "// name        text".
void printRemark(llvm::raw_ostream &os, llvm::StringRef remark);

/// explain() for a GPU, which need not be there.
Result<std::string> explainForGPU(std::string_view source, const CompileOptions &options,
                                  std::string_view until);

} // namespace attn

#endif // ATTN_COMPILER_EXPLAIN_H
