//===- LaunchOrder.cpp - kernels that start before others end -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel with a successor says at once that the successor may start. The device starts the
// successor when no block of the first kernel is left to be started, so that no block loses its
// place. The successor waits until the first kernel has ended and its memory can be seen. The wait
// stands after ops that need no memory: barriers, and values that follow from parameters. The
// successor always waits, since a third kernel relies on the wait.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Kernel.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn::tile;

static bool isProgrammatic(func::FuncOp kernel) {
  return kernel &&
         kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName).getProgrammatic();
}

/// Whether the op, or one in it, is given memory of the launch for more than its sizes.
static bool touchesMemory(Operation &op) {
  return op
      .walk([](Operation *inner) {
        bool isGiven = llvm::any_of(inner->getOperands(), [](Value operand) {
          return isa<MemRefType>(operand.getType()) && isa<BlockArgument>(operand);
        });
        return isGiven && !isa<memref::DimOp>(inner) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
      })
      .wasInterrupted();
}

void attn::tile::emitLaunchOrder(func::FuncOp kernel, func::FuncOp next) {
  if (!kernel.getBody().hasOneBlock())
    return;
  Block &body = kernel.getBody().front();
  auto emit = [&](Operation *before, NVVM::GridDepActionKind kind) {
    OpBuilder builder(before);
    NVVM::GriddepcontrolOp::create(builder, kernel.getLoc(), kind);
  };
  if (isProgrammatic(kernel)) {
    auto first = llvm::find_if(body.without_terminator(), touchesMemory);
    emit(&*first, NVVM::GridDepActionKind::wait);
  }
  if (isProgrammatic(next))
    emit(&body.front(), NVVM::GridDepActionKind::launch_dependents);
}
