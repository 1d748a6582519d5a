//===- DialectTest.cpp - every program of the tests, read, printed, verified and folded -------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// What is right about them the tests of dialects say. This one needs no tool, so that sanitizers
// see parsers, printers, verifiers and folds in minutes; wrong programs are welcome.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Registration/Registration.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace mlir;

static std::string print(ModuleOp module, bool isGeneric) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  module->print(os, isGeneric ? flags.printGenericOpForm() : flags);
  return text;
}

TEST(Dialects, ProgramsSurvivePrinting) {
  DialectRegistry registry;
  attn::registerDialects(registry);
  MLIRContext context(registry);
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) { return success(); });
  unsigned count = 0;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator it(ATTN_TEST_DIR, error), end;
       it != end && !error; it.increment(error)) {
    if (llvm::sys::path::extension(it->path()) != ".mlir")
      continue;
    auto buffer = llvm::MemoryBuffer::getFile(it->path());
    ASSERT_TRUE(bool(buffer)) << it->path();
    SmallVector<StringRef> programs;
    (*buffer)->getBuffer().split(programs, "// -----");
    for (StringRef program : programs) {
      auto module = parseSourceString<ModuleOp>(program, &context);
      if (!module)
        continue;
      ++count;
      std::string text = print(*module, /*isGeneric=*/false);
      auto again = parseSourceString<ModuleOp>(text, &context);
      ASSERT_TRUE(again) << it->path() << "\n" << text;
      // A resource has another name when it is read again.
      if (!program.contains("dense_resource"))
        EXPECT_EQ(print(*module, /*isGeneric=*/true), print(*again, /*isGeneric=*/true))
            << it->path();
      PassManager passes(&context);
      passes.addPass(createCanonicalizerPass());
      (void)passes.run(*module);
    }
  }
  EXPECT_FALSE(error) << error.message();
  EXPECT_GT(count, 500u);
}
