//===- UnitMeetings.h - where the threads of a unit meet before a product ---------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_UNITMEETINGS_H
#define ATTN_LIB_TRANSFORMS_TILE_UNITMEETINGS_H

#include "mlir/IR/Region.h"

namespace attn::tile {

/// Has the threads of each unit of the role meet at barrier `id` before a product whose places in
/// tensor memory some of them may have accessed since they met. The first thread of the unit asks
/// for the product, and so comes after them. Where nobody has, as after a wait for the product
/// before, there is nothing to wait for.
void meetBeforeProducts(mlir::Region &role, mlir::Value id, int64_t threads);

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_UNITMEETINGS_H
