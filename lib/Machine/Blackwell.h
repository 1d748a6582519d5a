//===- Blackwell.h - B200, B300, RTX 50 and RTX PRO Blackwell ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_BLACKWELL_H
#define ATTN_LIB_MACHINE_BLACKWELL_H

#include "lib/Machine/Machine.h"

namespace attn {

/// Those with tensor memory, and those without.
extern const Machine kBlackwell, kBlackwellUltra, kBlackwellSmall;

} // namespace attn

#endif // ATTN_LIB_MACHINE_BLACKWELL_H
