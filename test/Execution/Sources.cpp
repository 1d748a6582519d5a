//===- Sources.cpp - problems as IR, and their definition -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Sources.h"
#include "lib/Registration/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace attn::test {

Sources::Sources() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
}

mlir::OwningOpRef<mlir::ModuleOp> Sources::parse(const std::string &source) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(source, context.get());
  EXPECT_TRUE(module) << source;
  return module;
}

std::unique_ptr<CompiledKernel> Sources::define(const std::string &source) {
  auto module = parse(source);
  if (!module)
    return nullptr;
  CPUOptions options;
  options.jit.host = llvm::cantFail(getHostInfo());
  llvm::Expected<std::unique_ptr<CompiledKernel>> reference = compileReference(*module, options);
  if (reference)
    return std::move(*reference);
  ADD_FAILURE() << llvm::toString(reference.takeError()) << "\n" << source;
  return nullptr;
}

} // namespace attn::test
