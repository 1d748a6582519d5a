//===- SearchModel.h - which sizes a search need not time -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// An answer of refuseBlock is certain: the machine has no such block. The model here guesses
// registers and bytes. A search saves time by it, and a user is refused nothing.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_SEARCHMODEL_H
#define ATTN_LIB_TRANSFORMS_ATTN_SEARCHMODEL_H

#include "lib/Schedule/GPUBlock.h"
#include "lib/Transforms/Attn/ScheduleRule.h"

namespace attn {

/// Why a block that the machine has is not worth a trial for calls of so many rows: its threads
/// spill, or it moves more bytes than blocks of more rows, and those are what it waits for. Empty
/// if it is. The rule's own choice always is.
std::string leaveOut(const Machine &machine, const GPUProblem &problem, const GPUBlock &block,
                     int64_t rows);

/// Whether the tiles of a block fit the registers of a thread, as far as the model knows.
bool fitsRegisters(const Machine &machine, const GPUProblem &problem, const GPUBlock &block);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_SEARCHMODEL_H
