//===- AttnDialect.h - the attn dialect ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNDIALECT_H
#define ATTN_DIALECTS_ATTN_IR_ATTNDIALECT_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Attn/IR/AttnEnums.h.inc"

#include "dialects/Attn/IR/AttnDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/IR/AttnAttrs.h.inc"

namespace attn {
/// Registers how attn ops become ops on buffers (BufferizableOpInterface).
void registerBufferization(mlir::DialectRegistry &registry);
} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNDIALECT_H
