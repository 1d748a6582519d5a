//===- CountRegisters.cpp - tile-count-registers ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/Registers/CountRegisters.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn::tile {
#define GEN_PASS_DEF_COUNTREGISTERSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
struct CountRegistersPass
    : KernelPass<attn::tile::impl::CountRegistersPassBase<CountRegistersPass>,
                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    for (RoleCount role : countRegisters(kernel))
      remark::analysis(kernel.getLoc(), remark::RemarkOpts::name("registers").category("attn"))
          << llvm::formatv("role {0} of {1} takes {2} of {3} registers", role.name,
                           kernel.getName(), role.taken.registers, role.budget)
                 .str();
    return success();
  }
};
} // namespace
