//===- AttnPositions.h - where a part stands in a whole ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNPOSITIONS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNPOSITIONS_H

#include "dialects/Attn/IR/AttnDialect.h"

#include "dialects/Attn/IR/AttnPositionsEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/IR/AttnPositions.h.inc"

#endif // ATTN_DIALECTS_ATTN_IR_ATTNPOSITIONS_H
