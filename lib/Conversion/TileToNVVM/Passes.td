//===- Passes.td - from room 6 to room 7 ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETONVVM_PASSES_TD
#define ATTN_CONVERSION_TILETONVVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertTileToNVVMPass : Pass<"convert-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "the program of a block becomes the program of each of its threads";
  let description = [{
    Every kernel (a function with `tile.kernel`) becomes an llvm.func. Register tiles become the
    scalars that a thread holds, roles become branches on the warpgroup, products become wgmma, and
    boxes become tensor maps. The function has a parameter for each part of its arguments that its
    body needs, and the attribute `tile.plan` says which is which.

    * A `programmatic` kernel waits for the kernel before it in front of the first op that touches
      memory. The kernel before lets it start at once.
    * In kernels that `recompute`, loops around loops compute in each of their turns the values that
      the inner loops do not read.
    * In kernels that `hold`, the arrival between two waits for products comes after the first
      exponential of a weight, and depends on it.
    * An index has 32 bits; addresses have 64.

    Requires: a part of room 6 `async`: whole but for synchronous ops, every place with an offset.
    Produces: room 7 `thread`. Fails when: an op has no lowering, named in the error; a place or
    barrier has no offset; a thread would compute more elements of tiles than code should be made
    of.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect"];
}

#endif // ATTN_CONVERSION_TILETONVVM_PASSES_TD
