//===- Ampere.h - the machines whose warps multiply -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_AMPERE_H
#define ATTN_LIB_MACHINE_AMPERE_H

#include "lib/Machine/Machine.h"

namespace attn {

/// Of these machines, and of newer ones that have no other: a layout finds a product by its name.
inline constexpr Product kWarpProduct = {.name = "mma.sync",
                                         .form = Product::Form::Registers,
                                         .threads = 32,
                                         .rows = 16,
                                         .steps = 2,
                                         .columnStep = 8,
                                         .columns = 256,
                                         .sumBytes = 32,
                                         .registers = 32,
                                         .isAsync = false};

extern const Machine kAmpere, kAmpereSmall, kAda;

} // namespace attn

#endif // ATTN_LIB_MACHINE_AMPERE_H
