//===- AttnDialect.h - the attn dialect ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNDIALECT_H
#define ATTN_DIALECTS_ATTN_IR_ATTNDIALECT_H

#include "lib/Schedule/Schedule.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Attn/IR/AttnEnums.h.inc"

#include "dialects/Attn/IR/AttnDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/IR/AttnAttrs.h.inc"

namespace attn {
/// The discardable attribute that carries an op's #attn.schedule through the rooms.
inline constexpr llvm::StringLiteral kScheduleAttrName = "attn.schedule";

/// The discardable attribute that numbers the two passes of one gradient whose form is fused:
/// blocks that own keys add to the gradients of queries.
inline constexpr llvm::StringLiteral kFusedAttrName = "attn.fused";

/// The discardable attribute of an attention that says how many slots for query heads the rows of a
/// key head have, for attn-make-ways.
inline constexpr llvm::StringLiteral kPackAttrName = "attn.pack";

/// The discardable attribute of a step with a mask that says what is known of the keys that it does
/// not drop. Some row of its batch and head keeps each key of its slice, each up to
/// its slice's end, or each there is if there are as many rows as keys. Without it, its mask may
/// drop any of them in all rows.
inline constexpr llvm::StringLiteral kKeptKeysAttrName = "attn.kept_keys";
inline constexpr llvm::StringLiteral kKeepsSlice = "slice", kKeepsPrefix = "prefix",
                                     kKeepsDiagonal = "diagonal";

/// Registers how attn ops become ops on buffers (BufferizableOpInterface).
void registerBufferization(mlir::DialectRegistry &registry);
} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNDIALECT_H
