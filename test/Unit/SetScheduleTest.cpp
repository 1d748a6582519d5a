//===- SetScheduleTest.cpp - attn-set-schedule where dialects alone are registered ---------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;

/// What the pass says of a program for a GPU where only dialects are registered; empty for nothing.
static std::string schedule(StringRef body) {
  DialectRegistry registry;
  registry.insert<AttnDialect, func::FuncDialect>();
  MLIRContext context(registry);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str();
    return success();
  });
  std::string text = "!t = tensor<?x?x?x64xbf16>\n!r = tensor<?x?x?xf32>\n"
                     "func.func @f(%a: !t, %r: !r) -> !t {\n" +
                     body.str() + "  return %0 : !t\n}\n";
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "does not read: " + said;
  SetSchedulePassOptions options;
  options.target = "cuda";
  PassManager passes(&context);
  passes.addPass(createSetSchedulePass(options, {}));
  bool failed = mlir::failed(passes.run(*module));
  EXPECT_EQ(failed, !said.empty()) << said;
  return said;
}

TEST(SetSchedule, GradientsAskForLaterPasses) {
  EXPECT_EQ(schedule("%0 = attn.attention %a, %a, %a : !t, !t, !t -> !t\n"), "");
  EXPECT_EQ(schedule("%0 = attn.attention_grad_query %a, %a, %a, %a, %r, %r"
                     " : !t, !t, !t, !t, !r, !r -> d_query(!t)\n"),
            "expected the passes down to room 6 in the registry of dialects, got dialects alone "
            "(registerCandidates adds them)");
}
