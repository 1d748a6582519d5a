//===- BoundBuffers.cpp - attn-cpu-bound-buffers ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

namespace attn {
#define GEN_PASS_DEF_CPUBOUNDBUFFERSPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// alloc(%size) -> alloca of the bound, at the head of the block, reinterpreted at %size in the
/// place of the alloc.
static LogicalResult moveToStack(memref::AllocOp alloc, scf::ForallOp forall) {
  MemRefType type = alloc.getType();
  if (!type.getLayout().isIdentity())
    return alloc.emitOpError("expected a buffer without a layout, got ") << type;
  SmallVector<int64_t> shape;
  for (OpFoldResult size : alloc.getMixedSizes()) {
    FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
        presburger::BoundType::UB, ValueBoundsConstraintSet::Variable(size), nullptr,
        /*closedUB=*/true);
    if (failed(bound))
      return alloc.emitOpError(
                 "expected a bounded buffer inside a block: no constant is known to be at least "
                 "its size in ")
             << type;
    shape.push_back(std::max<int64_t>(*bound, 0));
  }
  auto b = OpBuilder::atBlockBegin(forall.getBody());
  Value stack =
      memref::AllocaOp::create(b, alloc.getLoc(),
                               MemRefType::get(shape, type.getElementType(),
                                               MemRefLayoutAttrInterface(), type.getMemorySpace()),
                               b.getI64IntegerAttr(64));
  if (type.hasStaticShape()) {
    alloc.replaceAllUsesWith(stack);
    alloc.erase();
    return success();
  }
  // Rows keep the distance of the bound only where that of the type agrees; sizes inside a row are
  // static in practice. A merge has rows of one batch and head.
  auto isOne = [](int64_t size) { return size == 1; };
  unsigned rows = llvm::find_if_not(type.getShape(), isOne) - type.getShape().begin();
  if (llvm::any_of(type.getShape().drop_front(rows + 1), ShapedType::isDynamic))
    return alloc.emitOpError(
               "expected only the first dimension of a buffer inside a block to be dynamic, got ")
           << type;
  // Upstream knows no strides of a type without elements.
  SmallVector<int64_t> suffixes = computeSuffixProduct(ArrayRef<int64_t>(shape));
  SmallVector<OpFoldResult> strides = getAsIndexOpFoldResult(b.getContext(), suffixes);
  b.setInsertionPoint(alloc);
  if (rows > 0) {
    Location loc = alloc.getLoc();
    Value count = getValueOrCreateConstantIndexOp(b, loc, alloc.getMixedSizes()[rows]);
    Value ofRow = arith::ConstantIndexOp::create(b, loc, suffixes[rows]);
    Value all = arith::MulIOp::create(b, loc, count, ofRow);
    std::fill_n(strides.begin(), rows, OpFoldResult(all));
  }
  Value view = memref::ReinterpretCastOp::create(b, alloc.getLoc(), type, stack,
                                                 OpFoldResult(b.getIndexAttr(0)),
                                                 alloc.getMixedSizes(), strides);
  alloc.replaceAllUsesWith(view);
  alloc.erase();
  return success();
}

/// A buffer lives until its IR block ends: for one between two parallel loops, until the function
/// returns.
static void freeAtEnd(memref::AllocOp alloc) {
  Operation *terminator = alloc->getBlock()->getTerminator();
  OpBuilder b(terminator);
  memref::DeallocOp::create(b, alloc.getLoc(), alloc);
}

namespace {
struct CPUBoundBuffersPass : RoomPass<attn::impl::CPUBoundBuffersPassBase<CPUBoundBuffersPass>,
                                      Room::Buffers, Room::Buffers> {
  using RoomPass::RoomPass;

  void getDependentDialects(DialectRegistry &registry) const override {
    RoomPass::getDependentDialects(registry);
    affine::registerValueBoundsOpInterfaceExternalModels(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
    scf::registerValueBoundsOpInterfaceExternalModels(registry);
  }

  LogicalResult transform() override {
    SmallVector<memref::AllocOp> allocs;
    getOperation()->walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    for (memref::AllocOp alloc : allocs) {
      if (!alloc->getBlock()->mightHaveTerminator()) {
        alloc.emitOpError("expected it inside of a function");
        return failure();
      }
      auto forall = alloc->getParentOfType<scf::ForallOp>();
      if (!forall || heap)
        freeAtEnd(alloc);
      else if (failed(moveToStack(alloc, forall)))
        return failure();
    }
    return success();
  }
};
} // namespace
