//===- VerifyLevel.cpp - attn-verify-level -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Levels.h"
#include "lib/Transforms/Attn/Passes.h"

namespace attn {
#define GEN_PASS_DEF_VERIFYLEVELPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
struct VerifyLevelPass : attn::impl::VerifyLevelPassBase<VerifyLevelPass> {
  using Base::Base;
  void runOnOperation() override {
    std::optional<Level> wanted = symbolizeLevel(level);
    if (!wanted) {
      getOperation()->emitError("expected level problem, grid or online, got '") << level << "'";
      return signalPassFailure();
    }
    if (failed(verifyLevel(getOperation(), *wanted)))
      signalPassFailure();
  }
};
} // namespace
