//===- RoomPass.h - a pass from one room to another -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ROOMS_ROOMPASS_H
#define ATTN_LIB_ROOMS_ROOMPASS_H

#include "lib/Rooms/Rooms.h"

namespace attn {

/// Checks both doors around `transform`. `Base` is the class that mlir-tblgen made of the pass:
///
///   struct TileToGridPass
///       : RoomPass<impl::TileToGridPassBase<TileToGridPass>, Room::Problem, Room::Grid> {
template <typename Base, Door From, Door To> class RoomPass : public Base {
public:
  using Base::Base;

  void runOnOperation() final {
    mlir::Operation *root = this->getOperation();
    if (failed(checkDoor(root, this->getArgument(), From)) || failed(transform()) ||
        failed(checkDoor(root, this->getArgument(), To)))
      this->signalPassFailure();
  }

protected:
  /// Transforms a program that is in the right room.
  virtual mlir::LogicalResult transform() = 0;
};

} // namespace attn

#endif // ATTN_LIB_ROOMS_ROOMPASS_H
