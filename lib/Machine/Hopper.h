//===- Hopper.h - H100 and H200 ---------------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_HOPPER_H
#define ATTN_LIB_MACHINE_HOPPER_H

#include "lib/Machine/Machine.h"

namespace attn {

/// One thread copies boxes, whose bytes a barrier counts.
inline constexpr Copy kBoxCopy = {.kind = Copy::Kind::Boxes,
                                  .signal = Copy::Signal::Bytes,
                                  .rows = 256,
                                  .rank = 5,
                                  .addsInBulk = true};

extern const Machine kHopper;

} // namespace attn

#endif // ATTN_LIB_MACHINE_HOPPER_H
