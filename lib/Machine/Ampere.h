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

extern const Machine kAmpere, kAmpereSmall, kAda;

} // namespace attn

#endif // ATTN_LIB_MACHINE_AMPERE_H
