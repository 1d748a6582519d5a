//===- KernelPass.h - a pass over kernels, from one room to another ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_KERNELPASS_H
#define ATTN_LIB_TRANSFORMS_TILE_KERNELPASS_H

#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::tile {

/// Transforms the kernels of a module, one after the other, up to the first failure.
template <typename Base, Door From, Door To> class KernelPass : public RoomPass<Base, From, To> {
public:
  using RoomPass<Base, From, To>::RoomPass;

protected:
  mlir::LogicalResult transform() final {
    for (auto kernel : this->getOperation().template getOps<mlir::func::FuncOp>())
      if (kernel->hasAttr(TileDialect::kKernelAttrName) && failed(transformKernel(kernel)))
        return mlir::failure();
    return mlir::success();
  }

  virtual mlir::LogicalResult transformKernel(mlir::func::FuncOp kernel) = 0;
};

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_KERNELPASS_H
