//===- Sources.h - problems as IR, and their definition -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_SOURCES_H
#define ATTN_TEST_EXECUTION_SOURCES_H

#include "lib/Target/CPU/Compile.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace attn::test {

/// Reads sources in a context of its own. What goes wrong is a failure of the test.
class Sources {
public:
  Sources();

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &source);
  /// The f64 reference of the only function of `source`; null after a failure.
  std::unique_ptr<CompiledKernel> define(const std::string &source);

private:
  std::unique_ptr<mlir::MLIRContext> context;
};

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_SOURCES_H
