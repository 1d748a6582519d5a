//===- ReadViews.cpp - attn-cpu-read-views ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Tiles of keys begin at multiples of block_n. So rows of a tile come in runs of
// gcd(P, block_n) that lie in one page each. A tile of one run is a slice of the pool; other tiles
// are copied, run by run, to a tile of their own. Rows of a sequence lie one after the other.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <numeric>

namespace attn {
#define GEN_PASS_DEF_CPUREADVIEWSPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// Where a slice of a view begins: rows from `row` on, of one batch and head, or of heads from one
/// on.
struct Rows {
  OpFoldResult batch, head, row;
};
} // namespace

static Value emitValue(ImplicitLocOpBuilder &b, OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), value);
}

static Value emitIndex(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

/// The rows of a page from `row` on, which lie in it all: (count, D). A page that the pool does not
/// have is another one, since its elements are undefined (s19).
static Value emitRun(ImplicitLocOpBuilder &b, PagedOp paged, const Rows &rows, Value row,
                     OpFoldResult count) {
  Value size = emitIndex(b, paged.getPageSize());
  Value entry = tensor::ExtractOp::create(
      b, paged.getTable(),
      ValueRange{emitValue(b, rows.batch), b.createOrFold<arith::DivUIOp>(row, size)});
  Value page = arith::IndexCastOp::create(b, b.getIndexType(), entry);
  Value last = arith::SubIOp::create(b, tensor::DimOp::create(b, paged.getPool(), 0).getResult(),
                                     emitIndex(b, 1));
  page = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, page, last), emitIndex(b, 0));
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {page, b.createOrFold<arith::RemUIOp>(row, size), rows.head,
                                       zero},
                            sizes = {one, count, one,
                                     tensor::getMixedSize(b, b.getLoc(), paged.getPool(), 3)},
                            strides(4, one);
  auto pool = cast<RankedTensorType>(paged.getPool().getType());
  auto whole = tensor::ExtractSliceOp::inferResultType(pool, sizes);
  auto type =
      RankedTensorType::get({whole.getDimSize(1), whole.getDimSize(3)}, pool.getElementType());
  return tensor::ExtractSliceOp::create(b, type, paged.getPool(), offsets, sizes, strides);
}

/// A tile of up to `tileSize` rows, the first of which is a multiple of that.
static Value emitPagedTile(ImplicitLocOpBuilder &b, PagedOp paged, const Rows &rows,
                           OpFoldResult count, int64_t tileSize, RankedTensorType type) {
  int64_t run = std::gcd(paged.getPageSize(), tileSize);
  Value first = emitValue(b, rows.row);
  if (getConstantIntValue(count) == run || (tileSize > 1 && run == tileSize))
    return emitRun(b, paged, rows, first, count);
  // A block has memory for whole tiles.
  OpFoldResult columns = b.getIndexAttr(type.getDimSize(1)), zero = b.getIndexAttr(0),
               one = b.getIndexAttr(1),
               most = tileSize > 1 ? OpFoldResult(b.getIndexAttr(tileSize)) : count;
  Value empty =
      tensor::EmptyOp::create(b, ArrayRef<OpFoldResult>{most, columns}, type.getElementType());
  auto copy = scf::ForOp::create(b, emitIndex(b, 0), emitValue(b, count), emitIndex(b, run),
                                 ValueRange{empty});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(copy.getBody());
    Value at = copy.getInductionVar();
    Value part = emitRun(b, paged, rows, arith::AddIOp::create(b, first, at), b.getIndexAttr(run));
    Value tile = tensor::InsertSliceOp::create(
        b, part, copy.getRegionIterArgs()[0], ArrayRef<OpFoldResult>{at, zero},
        ArrayRef<OpFoldResult>{b.getIndexAttr(run), columns}, ArrayRef<OpFoldResult>{one, one});
    scf::YieldOp::create(b, tile);
  }
  return tensor::ExtractSliceOp::create(b, copy.getResult(0), ArrayRef<OpFoldResult>{zero, zero},
                                        ArrayRef<OpFoldResult>{count, columns},
                                        ArrayRef<OpFoldResult>{one, one});
}

/// Rows of a sequence: (count, D), or (count).
static Value emitRaggedTile(ImplicitLocOpBuilder &b, RaggedOp ragged, const Rows &rows,
                            OpFoldResult count) {
  Sequence sequence = emitSequence(b, b.getLoc(), ragged, rows.batch);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {
      b.createOrFold<arith::AddIOp>(sequence.begin, emitValue(b, rows.row)), rows.head};
  SmallVector<OpFoldResult> sizes = {count, one};
  auto all = cast<RankedTensorType>(ragged.getRows().getType());
  if (all.getRank() == 3) {
    offsets.push_back(zero);
    sizes.push_back(tensor::getMixedSize(b, b.getLoc(), ragged.getRows(), 2));
  }
  SmallVector<OpFoldResult> strides(sizes.size(), one);
  auto whole = tensor::ExtractSliceOp::inferResultType(all, sizes);
  SmallVector<int64_t> shape(whole.getShape());
  shape.erase(shape.begin() + 1);
  auto type = RankedTensorType::get(shape, all.getElementType());
  return tensor::ExtractSliceOp::create(b, type, ragged.getRows(), offsets, sizes, strides);
}

/// Offsets of rows are multiples of it, as the steps that take a tile tell: 1 where none does.
static int64_t getTileSize(Value tile) {
  int64_t size = 0;
  for (Operation *user : tile.getUsers()) {
    auto schedule = user->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    size = std::gcd(size, schedule ? schedule->blockN : 1);
  }
  return std::max<int64_t>(size, 1);
}

/// Replaces sizes of the slice that are asked for, so that none keeps it.
static void replaceSizes(tensor::ExtractSliceOp slice) {
  SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
  int64_t dropped = sizes.size() - slice.getType().getRank();
  for (Operation *user : llvm::make_early_inc_range(slice->getUsers()))
    if (auto dim = dyn_cast<tensor::DimOp>(user);
        dim && dim.getConstantIndex() &&
        uint64_t(*dim.getConstantIndex()) < sizes.size() - dropped) {
      // Batch and head are in front.
      ImplicitLocOpBuilder b(dim.getLoc(), dim);
      dim.replaceAllUsesWith(emitValue(b, sizes[dropped + *dim.getConstantIndex()]));
      dim.erase();
    }
}

/// Where a slice of what begins at `from` begins: its dimensions are the last ones of the view.
template <typename View> static Rows findRows(View view, tensor::ExtractSliceOp slice, Rows from) {
  ImplicitLocOpBuilder b(slice.getLoc(), slice);
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
  OpFoldResult *const starts[] = {&from.batch, &from.head, &from.row};
  for (size_t dropped = view.getType().getRank() - offsets.size(), dim = dropped; dim < 3; ++dim) {
    OpFoldResult &start = *starts[dim], offset = offsets[dim - dropped];
    if (isConstantIntValue(start, 0))
      start = offset;
    else if (!isConstantIntValue(offset, 0))
      start = b.createOrFold<arith::AddIOp>(emitValue(b, start), emitValue(b, offset));
  }
  return from;
}

/// Lets the users of a slice of a view, or of a slice that begins at `from`, read the tensor that
/// the view shows.
template <typename View>
static LogicalResult readView(View view, tensor::ExtractSliceOp slice, const Rows &from) {
  if (!slice.hasUnitStride())
    return slice.emitOpError("expected a slice of rows of a view, with strides of 1");
  Rows rows = findRows(view, slice, from);
  replaceSizes(slice);
  SmallVector<tensor::ExtractSliceOp> parts;
  for (Operation *user : slice->getUsers())
    if (auto part = dyn_cast<tensor::ExtractSliceOp>(user))
      parts.push_back(part);
  for (tensor::ExtractSliceOp part : parts)
    if (failed(readView(view, part, rows)))
      return failure();
  if (slice->use_empty()) {
    slice.erase();
    return success();
  }
  // Without batch and head.
  int64_t rank = view.getType().getRank() - 2;
  if (slice.getType().getRank() != rank)
    return slice.emitOpError("expected a slice of rows of one head of a view");
  ImplicitLocOpBuilder b(slice.getLoc(), slice);
  OpFoldResult count = slice.getMixedSizes()[slice.getSourceType().getRank() - rank];
  Value tile;
  if constexpr (std::is_same_v<View, PagedOp>)
    tile = emitPagedTile(b, view, rows, count, getTileSize(slice), slice.getType());
  else
    tile = emitRaggedTile(b, view, rows, count);
  if (tile.getType() != slice.getType())
    tile = tensor::CastOp::create(b, slice.getType(), tile);
  slice.replaceAllUsesWith(tile);
  slice.erase();
  return success();
}

template <typename View> static LogicalResult readView(View view) {
  for (Operation *user : llvm::make_early_inc_range(view->getUsers())) {
    if (auto dim = dyn_cast<tensor::DimOp>(user); dim && dim.getConstantIndex()) {
      int64_t rank = view.getType().getRank();
      if (*dim.getConstantIndex() < 0 || *dim.getConstantIndex() >= rank)
        return dim.emitOpError("expected a dimension below ")
               << rank << ", got " << *dim.getConstantIndex();
      ImplicitLocOpBuilder b(dim.getLoc(), dim);
      OpFoldResult size = emitSize(b, b.getLoc(), view, *dim.getConstantIndex());
      dim.replaceAllUsesWith(emitValue(b, size));
      dim.erase();
      continue;
    }
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice)
      return view.emitOpError("expected sizes and slices of rows of one head as its users, got '")
             << user->getName() << "'";
    OpFoldResult zero = OpBuilder(view.getContext()).getIndexAttr(0);
    if (failed(readView(view, slice, {zero, zero, zero})))
      return failure();
  }
  view.erase();
  return success();
}

namespace {
struct CPUReadViewsPass
    : RoomPass<attn::impl::CPUReadViewsPassBase<CPUReadViewsPass>, Room::Online, Room::Online> {
  template <typename View> LogicalResult readAll() {
    SmallVector<View> views;
    getOperation()->walk([&](View view) { views.push_back(view); });
    return success(llvm::all_of(views, [](View view) { return succeeded(readView(view)); }));
  }

  LogicalResult transform() override {
    return failure(failed(readAll<PagedOp>()) || failed(readAll<RaggedOp>()));
  }
};
} // namespace
