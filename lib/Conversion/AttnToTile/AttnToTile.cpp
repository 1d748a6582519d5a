//===- AttnToTile.cpp - convert-attn-to-tile ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/BlockConverter.h"
#include "lib/Conversion/AttnToTile/Passes.h"
#include "lib/Transforms/Attn/Levels.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILEPASS
#include "lib/Conversion/AttnToTile/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// A tensor as a kernel sees it: any strides, but the last dimension of a matrix is contiguous.
static Type getArgumentType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return type;
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (tensor.getRank() > 1)
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(type.getContext(), /*offset=*/0, strides);
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
}

/// The only grid of a function, and the attention in it.
static FailureOr<scf::ForallOp> findGrid(func::FuncOp function) {
  auto grids = llvm::to_vector(function.getBody().front().getOps<scf::ForallOp>());
  if (grids.size() != 1)
    return function.emitOpError("expected one scf.forall mapped to blocks, got ") << grids.size();
  if (grids[0].getRank() != 3 || !grids[0].getMapping())
    return grids[0].emitOpError("expected a grid over (B, H, M tiles) mapped to blocks");
  for (Value result : cast<func::ReturnOp>(function.getBody().front().getTerminator()).getOperands())
    if (result.getDefiningOp() != grids[0].getOperation())
      return function.emitOpError("expected every result to come from the grid");
  return grids[0];
}

/// ceil(bound / step) of the grid's dimension, as a factor that the runtime evaluates on the arguments.
static FailureOr<Attribute> getGridFactor(scf::ForallOp grid, unsigned dim) {
  Builder builder(grid.getContext());
  int64_t step = *getConstantIntValue(grid.getMixedStep()[dim]);
  OpFoldResult bound = grid.getMixedUpperBound()[dim];
  if (auto constant = getConstantIntValue(bound))
    return Attribute(builder.getI64IntegerAttr(llvm::divideCeil(*constant, step)));
  auto size = cast<Value>(bound).getDefiningOp<tensor::DimOp>();
  auto argument = size ? dyn_cast<BlockArgument>(size.getSource()) : BlockArgument();
  if (!argument || !size.getConstantIndex())
    return grid.emitOpError("expected bounds that are sizes of arguments");
  return Attribute(
      tile::ExtentAttr::get(grid.getContext(), argument.getArgNumber(), *size.getConstantIndex(), step));
}

/// What the tensor cores and their copies can do: 64 rows for a warpgroup, at most four of them, sums over 16 keys, columns in
/// groups of 8.
static LogicalResult checkSizes(OnlineAttentionOp op, ScheduleAttr schedule) {
  for (int64_t columns : {op.getKey().getType().getDimSize(1), op.getValue().getType().getDimSize(1)})
    if (columns % 8 || columns > 256)
      return op.emitOpError("expected head dimensions in multiples of 8 up to 256 on this target, got ")
             << columns << "; the nearest is " << std::min<int64_t>(256, llvm::alignTo(columns, 8));
  if (int64_t m = schedule.getBlockM(); m % 64 || m > 256)
    return op.emitOpError("expected block_m in multiples of 64 up to 256 on this target, got ")
           << m << "; the nearest is " << std::min<int64_t>(256, llvm::alignTo(m, 64));
  if (int64_t n = schedule.getBlockN(); n % 16 || n > 256)
    return op.emitOpError("expected block_n in multiples of 16 up to 256 on this target, got ")
           << n << "; the nearest is " << std::min<int64_t>(256, llvm::alignTo(n, 16));
  return success();
}

static LogicalResult convertFunction(func::FuncOp function) {
  FailureOr<scf::ForallOp> grid = findGrid(function);
  if (failed(grid))
    return failure();
  ScheduleAttr schedule;
  WalkResult sizes = grid->walk([&](OnlineAttentionOp op) {
    schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    return WalkResult(!schedule ? success() : checkSizes(op, schedule));
  });
  if (sizes.wasInterrupted())
    return failure();
  // A mask that keeps nothing leaves no step to schedule: the grid's rows are all there is.
  int64_t blockM = schedule ? schedule.getBlockM() : *getConstantIntValue(grid->getMixedStep()[2]);
  int64_t blockN = schedule ? schedule.getBlockN() : blockM;

  SmallVector<Attribute> factors;
  Builder builder(function.getContext());
  for (unsigned dim : {2u, 1u, 0u}) {
    FailureOr<Attribute> factor = getGridFactor(*grid, dim);
    if (failed(factor))
      return failure();
    factors.push_back(builder.getArrayAttr(*factor));
  }
  SmallVector<Type> types;
  for (Type type : function.getArgumentTypes())
    types.push_back(getArgumentType(type));
  for (Type type : function.getResultTypes())
    types.push_back(getArgumentType(type));

  OpBuilder b(function);
  auto kernel = func::FuncOp::create(b, function.getLoc(), function.getName(), b.getFunctionType(types, {}));
  kernel.addEntryBlock();
  // One warpgroup for each 64 rows; roles may add more.
  int64_t warpgroups = std::max<int64_t>(1, blockM / 64);
  kernel->setAttr(tile::TileDialect::kKernelAttrName,
                  tile::KernelAttr::get(b.getContext(), warpgroups, b.getArrayAttr(factors)));
  BlockConverter converter(function, *grid, kernel, blockM, blockN);
  if (failed(converter.convert()))
    return failure();
  function.erase();
  return success();
}

namespace {
struct ConvertAttnToTilePass : attn::impl::ConvertAttnToTilePassBase<ConvertAttnToTilePass> {
  void runOnOperation() override {
    if (failed(verifyLevel(getOperation(), Level::Online)))
      return signalPassFailure();
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && failed(convertFunction(function)))
        return signalPassFailure();
  }
};
} // namespace
