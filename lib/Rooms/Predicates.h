//===- Predicates.h - the ops and conditions of each room -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ROOMS_PREDICATES_H
#define ATTN_LIB_ROOMS_PREDICATES_H

#include "lib/Rooms/Rooms.h"

namespace attn {

// Each looks at one op, and not at those in its regions.

/// problem: whole tensors. There is neither a grid nor a running state of the softmax.
Complaint refuseInProblem(mlir::Operation *op);
/// grid: attention has no variants, and covers one batch and one head inside of one scf.forall over
/// (B, H, M tiles) mapped to blocks; so do gradients in two passes, that of keys over (B, Hkv, N
/// tiles). The whole gradient, which only the reference lowers, may be there.
Complaint refuseInGrid(mlir::Operation *op);
Complaint demandOfGrid(mlir::Operation *op);
/// online: neither attn.attention nor gradients of all keys; attn.online_attention carries (acc,
/// row_max, row_sum), and attn.normalize ends it.
Complaint refuseInOnline(mlir::Operation *op);

/// tile: kernels on register tiles that nobody has given a place or a layout, and ops that run
/// where they stand.
Complaint refuseInTile(mlir::Operation *op);
Complaint demandOfTile(mlir::Operation *op);
/// placed: every tile has a layout; products read shared memory, or a left operand in the layout
/// for it.
Complaint refuseInPlaced(mlir::Operation *op);
Complaint demandOfPlaced(mlir::Operation *op);
/// async: as placed, and every copy and product is in flight until somebody waits for it. Each role
/// has a program of its own. Every place and barrier, which may be rings by now, has an offset in
/// the shared memory of a block, which holds them.
Complaint refuseInAsync(mlir::Operation *op);
Complaint demandOfAsync(mlir::Operation *op);

/// thread: every function that is defined is a kernel.
Complaint demandOfThread(mlir::Operation *op);

/// All rooms above the rooms of a GPU, and all rooms of other devices: none of them may have a
/// kernel yet.
Complaint refuseKernel(mlir::Operation *op);

/// buffers, vectors: no value is a tensor.
Complaint refuseTensors(mlir::Operation *op);

} // namespace attn

#endif // ATTN_LIB_ROOMS_PREDICATES_H
