//===- AttnAllAttrs.td - the attributes that the dialect registers -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One parser serves all attributes; their declarations are in two headers.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ALL_ATTRS_TD
#define ATTN_ALL_ATTRS_TD

include "dialects/Attn/IR/AttnAttrs.td"
include "dialects/Attn/IR/AttnPositions.td"

#endif // ATTN_ALL_ATTRS_TD
