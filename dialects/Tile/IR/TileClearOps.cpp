//===- TileClearOps.cpp - operations that keep what is not read out of products -------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

SharedType attn::tile::getMarksType(MLIRContext *context, int64_t warps) {
  int64_t rows = llvm::alignTo(warps, kSwizzleRows);
  return SharedType::get(context, ArrayRef<int64_t>{rows, kMarkWords},
                         IntegerType::get(context, 32),
                         /*swizzle=*/4 * kMarkWords, /*stages=*/1);
}

/// mark_read_c1: marks are one stage of 8 columns of i32, with a row for each warp
static LogicalResult verifyMarks(Operation *op, SharedType marks, int64_t warps) {
  if (marks.getElementType().isInteger(32) && marks.getNumColumns() == kMarkWords &&
      marks.getNumRows() >= warps && marks.getStages() == 1)
    return success();
  return op->emitOpError("expected marks of one stage of ")
         << kMarkWords << " columns of i32 and at least " << warps << " rows, got " << marks;
}

LogicalResult MarkReadOp::verify() {
  // mark_read_c2: weights are a matrix of 16-bit floats in a layout, of at most 256 columns
  auto type = cast<RankedTensorType>(getWeights().getType());
  if (type.getRank() != 2 || !isa<FloatType>(type.getElementType()) ||
      type.getElementTypeBitWidth() != 16 || !isa_and_nonnull<AccAttr>(type.getEncoding()) ||
      type.getDimSize(1) > kMarkedColumns)
    return emitOpError("expected weights of 16-bit floats in #tile.acc and at most ")
           << kMarkedColumns << " columns, got " << type;
  return verifyMarks(*this, getMarks().getType(), getLayout(type).getNumWarps());
}

static LogicalResult verifyResult(ClearUnreadOp op) {
  // clear_unread_c3: a register tile makes one of its type, a shared tile none
  auto shared = dyn_cast<SharedType>(op.getValues().getType());
  if (shared ? bool(op.getResult())
             : !op.getResult() || op.getResult().getType() != op.getValues().getType())
    return op.emitOpError("expected a result of the type of a register tile, and none of a shared "
                          "one, got values of ")
           << op.getValues().getType();
  return success();
}

LogicalResult ClearUnreadOp::verify() {
  auto shared = dyn_cast<SharedType>(getValues().getType());
  // clear_unread_c4: it is said by a lhs or marks, or from which row; rows of a place have 16 bits
  if (bool(getBy()) == bool(getFrom()))
    return emitOpError("expected what is read, or a first row to clear, got ")
           << (getBy() ? "both" : "neither");
  if (getFrom()) {
    if (shared && shared.getElementBytes() != 2)
      return emitOpError("expected rows of 16-bit elements from a first row on, got ")
             << getValues().getType();
    return verifyResult(*this);
  }
  auto marks = dyn_cast<SharedType>(getBy().getType());
  // clear_unread_c1: marks clear one stage of at most 256 rows of 16-bit elements, unconditionally
  if (marks) {
    if (!shared || shared.getStages() != 1 || shared.getElementBytes() != 2 ||
        shared.getNumRows() > kMarkedColumns || getCondition())
      return emitOpError("expected one stage of at most ")
             << kMarkedColumns << " rows of 16-bit elements and no condition beside marks, got "
             << getValues().getType();
    return verifyMarks(*this, marks, plan::getMachine(*this).getWarps(1));
  }
  // clear_unread_c2: a lhs has a column for each row of the values
  auto weights = cast<RankedTensorType>(getBy().getType());
  int64_t rows = shared ? shared.getNumRows()
                        : cast<RankedTensorType>(getValues().getType()).getShape().front();
  if (weights.getRank() != 2 || weights.getDimSize(1) != rows)
    return emitOpError("expected a column for each row of ")
           << getValues().getType() << ", got " << weights;
  return verifyResult(*this);
}

void ClearUnreadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getBy() && isa<SharedType>(getBy().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &*getByMutable().begin());
  if (!isa<SharedType>(getValues().getType()))
    return;
  effects.emplace_back(MemoryEffects::Read::get(), &getValuesMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getValuesMutable());
}

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileClearOps.cpp.inc"
