//===- EmitPTXPass.cpp - emit-ptx ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/Plan.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Target/PTX/EmitPTX.h"
#include "lib/Target/PTX/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"

namespace attn {
#define GEN_PASS_DEF_EMITPTXPASS
#include "lib/Target/PTX/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static LogicalResult write(ModuleOp module, llvm::StringRef path, llvm::StringRef text) {
  std::error_code code;
  llvm::ToolOutputFile file(path, code, llvm::sys::fs::OF_Text);
  if (code)
    return module.emitError("expected to write '") << path << "', got " << code.message();
  file.os() << text;
  file.keep();
  return success();
}

static LogicalResult report(ModuleOp module, llvm::Error error) {
  return module.emitError(llvm::toString(std::move(error)));
}

namespace {
struct EmitPTXPass
    : RoomPass<attn::impl::EmitPTXPassBase<EmitPTXPass>, Room::Thread, Room::Thread> {
  using RoomPass::RoomPass;

  LogicalResult emit(ModuleOp module) {
    PTXTimings times;
    llvm::Expected<std::string> text = emitPTX(module, &times);
    if (!text)
      return report(module, text.takeError());
    if (timings)
      llvm::errs() << llvm::formatv("translate {0:f1} ms, optimise {1:f1} ms, generate {2:f1} ms\n",
                                    times.translate, times.optimize, times.generate);
    llvm::Expected<std::vector<KernelPlan>> plans = getKernelPlans(module);
    if (!plans)
      return report(module, plans.takeError());
    if (!ptx.empty() && failed(write(module, ptx, *text)))
      return failure();
    return plan.empty() ? success() : write(module, plan, writePlan({std::move(*plans), {}}));
  }

  LogicalResult transform() override { return emit(getOperation()); }
};
} // namespace
