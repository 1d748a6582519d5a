//===- TileVerifiers.cpp - constraints, numbered as in dialects/Tile/README.md -===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Whether rows of the memory are those of sequences, of which there is a batch more.
static bool isRagged(Value memory) {
  auto argument = dyn_cast<BlockArgument>(memory);
  auto function = argument
                      ? dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp())
                      : FunctionOpInterface();
  return function && argument.getOwner()->isEntryBlock() &&
         function.getArgAttr(argument.getArgNumber(), PlanDialect::kRaggedAttrName);
}

/// global_c1: one offset (or index) for each dimension of the memory, and one for the batch of
/// sequences
static LogicalResult verifyOffsets(Operation *op, Value memory, size_t offsets) {
  int64_t rank = cast<MemRefType>(memory.getType()).getRank() + isRagged(memory);
  if (rank == int64_t(offsets))
    return success();
  return op->emitOpError("expected one offset per dimension of ")
         << memory.getType() << ", got " << offsets;
}

/// global_c2: tile and memory have the same element type
static LogicalResult verifyElements(Operation *op, Type memory, Type elementType) {
  if (getElementTypeOrSelf(memory) == elementType)
    return success();
  return op->emitOpError("expected the element type of ") << memory << ", got " << elementType;
}

/// global_c3: the tile has rank 1 or 2, at most the memory's
static LogicalResult verifyTileRank(Operation *op, Type memory, int64_t rank) {
  if (rank >= 1 && rank <= 2 && rank <= cast<MemRefType>(memory).getRank())
    return success();
  return op->emitOpError("expected a tile of rank 1 or 2 that ")
         << memory << " can hold, got rank " << rank;
}

LogicalResult LoadOp::verify() {
  auto tile = cast<RankedTensorType>(getType());
  return failure(failed(verifyOffsets(*this, getSource(), getOffsets().size())) ||
                 failed(verifyElements(*this, getSource().getType(), tile.getElementType())) ||
                 failed(verifyTileRank(*this, getSource().getType(), tile.getRank())));
}

LogicalResult LoadColumnsOp::verify() {
  auto tile = cast<RankedTensorType>(getType());
  // load_columns_c1: a matrix of f32, in `acc` if it has a layout
  if (tile.getRank() != 2 || !tile.getElementType().isF32() ||
      (tile.getEncoding() && !isa<AccAttr>(tile.getEncoding())))
    return emitOpError("expected a matrix of f32, without a layout or in #tile.acc, got ") << tile;
  Type source = getSource().getType();
  auto row = dyn_cast<SharedType>(source);
  if (!row)
    return failure(failed(verifyOffsets(*this, getSource(), getOffsets().size())) ||
                   failed(verifyElements(*this, source, tile.getElementType())) ||
                   failed(verifyTileRank(*this, source, /*rank=*/1)));
  // load_columns_c2: a shared source is one stage of a row of f32, as long as the tile is wide or
  // longer, without offsets
  if (!row.isRow() || row.getStages() != 1 || !row.getElementType().isF32() ||
      row.getNumColumns() < tile.getDimSize(1) || !getOffsets().empty())
    return emitOpError("expected one stage of a row of f32 for the columns of ")
           << tile << ", without offsets, got " << row << " and " << getOffsets().size()
           << " offsets";
  return success();
}

LogicalResult LoadSharedOp::verify() {
  auto tile = cast<RankedTensorType>(getType());
  SharedType source = getSource().getType();
  // load_shared_c1: a shared source is one stage of the tile's rows and element type, and of its
  // columns or more
  if (source.getStages() == 1 && !source.isRow() && tile.getRank() == 2 &&
      source.getNumRows() == tile.getDimSize(0) && source.getNumColumns() >= tile.getDimSize(1) &&
      source.getElementType() == tile.getElementType())
    return success();
  return emitOpError("expected one stage of the rows, columns or more, and element type of ")
         << tile << ", got " << source;
}

LogicalResult GatherOp::verify() {
  auto tile = cast<RankedTensorType>(getType());
  if (failed(verifyOffsets(*this, getSource(), getIndices().size())) ||
      failed(verifyElements(*this, getSource().getType(), tile.getElementType())))
    return failure();
  // gather_c1: an index is a scalar or a tile of indices like the result
  Type expected = tile.clone(IndexType::get(getContext()));
  for (Type type : getIndices().getTypes())
    if (!type.isIndex() && type != expected)
      return emitOpError("expected index or ") << expected << " as an index, got " << type;
  return success();
}

LogicalResult StoreOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  Type dest = getDest().getType();
  // store_c3: what is added is f32, to global memory
  if (getAdd() && (!isa<MemRefType>(dest) || !tile.getElementType().isF32()))
    return emitOpError("expected a tile of f32 to add to memory, got ") << tile << " and " << dest;
  if (isa<MemRefType>(dest))
    return failure(failed(verifyOffsets(*this, getDest(), getOffsets().size())) ||
                   failed(verifyElements(*this, dest, tile.getElementType())) ||
                   failed(verifyTileRank(*this, dest, tile.getRank())));
  // store_c1: no offsets into a shared tile
  if (!getOffsets().empty())
    return emitOpError("expected no offsets into ") << dest << ", got " << getOffsets().size();
  // store_c2: a shared destination is one stage of the tile's shape and element type
  auto shared = cast<SharedType>(dest);
  if (shared.getShape() != tile.getShape() || shared.getElementType() != tile.getElementType() ||
      shared.getStages() != 1)
    return emitOpError("expected one stage of the shape and element type of ")
           << tile << ", got " << shared;
  return success();
}

LogicalResult ScatterAddOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  if (failed(verifyOffsets(*this, getDest(), getIndices().size())) ||
      failed(verifyElements(*this, getDest().getType(), tile.getElementType())))
    return failure();
  // scatter_add_c1: what is added is f32
  if (!tile.getElementType().isF32())
    return emitOpError("expected a tile of f32 to add to memory, got ") << tile;
  // scatter_add_c2: an index is a scalar or a tile of indices like the value
  Type expected = tile.clone(IndexType::get(getContext()));
  for (Type type : getIndices().getTypes())
    if (!type.isIndex() && type != expected)
      return emitOpError("expected index or ") << expected << " as an index, got " << type;
  return success();
}

LogicalResult AllocSharedOp::verify() {
  // alloc_shared_c1: an offset is 0 or a positive multiple of 1024, the period of the widest
  // swizzle
  int64_t offset = getOffset().value_or(0);
  if (int64_t step = getMachine(*this).stageBytes; offset < 0 || offset % step != 0)
    return emitOpError("expected an offset that is a multiple of ") << step << ", got " << offset;
  return success();
}

/// A box of global memory and a shared tile: what all copies between them have in common.
static LogicalResult verifyBox(Operation *op, Value global, size_t offsets, Type shared) {
  Type memory = global.getType();
  auto type = cast<SharedType>(shared);
  if (failed(verifyOffsets(op, global, offsets)) ||
      failed(verifyElements(op, memory, type.getElementType())))
    return failure();
  // box_c1: the memory of a box has two to five dimensions, the rows and columns last
  int64_t rank = cast<MemRefType>(memory).getRank();
  if (int64_t most = getMachine(op).copy.rank; rank < 2 || rank > most)
    return op->emitOpError("expected memory of rank 2 to ") << most << ", got " << memory;
  // box_c2: a box fills one stage
  if (type.getStages() != 1)
    return op->emitOpError("expected one stage (see tile.stage), got ") << type;
  return success();
}

LogicalResult CopyOp::verify() {
  return verifyBox(*this, getSource(), getOffsets().size(), getDest().getType());
}

LogicalResult TransposeOp::verify() {
  auto source = cast<SharedType>(getSource().getType()),
       dest = cast<SharedType>(getDest().getType());
  // transpose_c1: one stage of M x N 8-bit elements, M in multiples of 32 and N of 16, and one of
  // N x M in quads
  if (source.isRow() || dest.isRow() || source.getElementBytes() != 1 ||
      source.getElementType() != dest.getElementType() || source.getStages() != 1 ||
      dest.getStages() != 1 || source.getQuads() || !dest.getQuads() ||
      source.getNumRows() != dest.getNumColumns() || source.getNumColumns() != dest.getNumRows() ||
      source.getNumRows() % 32 != 0 || source.getNumColumns() % 16 != 0)
    return emitOpError(
               "expected a stage of 8-bit elements with rows in multiples of 32 and columns "
               "of 16, and one with rows as columns in quads, got ")
           << source << " and " << dest;
  // transpose_c2: one warpgroup transposes, of which no thread is elected
  RoleAttr named = getKernelRole(*this);
  RoleInfo role = getRole(*this);
  if (named
          ? !named.getElected() && named.getWarpgroups() == 1
          : !(*this)->getParentOfType<SpecializeOp>() || (!role.isElected && role.warpgroups == 1))
    return success();
  return emitOpError("expected a role of one warpgroup that is not elected");
}

LogicalResult AnyRowOp::verify() {
  // any_row_c1: rows of i1, of products that threads wait for
  auto type = cast<RankedTensorType>(getSource().getType());
  auto row = dyn_cast_or_null<RowAttr>(type.getEncoding());
  auto acc = row ? dyn_cast<AccAttr>(row.getOf()) : AccAttr();
  if (acc && !acc.getUnit().isAsync && type.getElementType().isInteger(1))
    return success();
  return emitOpError("expected i1 for each row of products that threads wait for, got ") << type;
}

LogicalResult CopyShareOp::verify() {
  // copy_share_c1: the block has no roles
  if ((*this)->getParentOfType<SpecializeOp>())
    return emitOpError("expected a block without roles: each thread of it has a share");
  return verifyBox(*this, getSource(), getOffsets().size(), getDest().getType());
}

LogicalResult StoreAsyncOp::verify() {
  return verifyBox(*this, getDest(), getOffsets().size(), getSource().getType());
}

/// Whether a table finds the rows of the memory.
static bool isPaged(Value memory) {
  auto argument = dyn_cast<BlockArgument>(memory);
  auto function = argument
                      ? dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp())
                      : FunctionOpInterface();
  return function && function.getArgAttr(argument.getArgNumber(), PlanDialect::kPagedAttrName);
}

LogicalResult FindRowsOp::verify() {
  if (failed(verifyOffsets(*this, getSource(), getOffsets().size())))
    return failure();
  // find_rows_c1: the memory is a paged argument of the kernel
  if (!isPaged(getSource()))
    return emitOpError("expected an argument with plan.paged, got ") << getSource().getType();
  // find_rows_c2: the warps are those of a warpgroup, which is the role, and of which no thread is
  // elected
  int64_t warps = getMachine(*this).getWarps(1);
  RoleAttr named = getKernelRole(*this);
  RoleInfo role = getRole(*this);
  bool isElected = named ? named.getElected() : role.isElected;
  int64_t warpgroups = named ? named.getWarpgroups() : role.warpgroups;
  if (isElected || warpgroups != 1 || getType().getWarps() != warps)
    return emitOpError("expected a role of ")
           << warps << " warps, none of them elected, got " << getType().getWarps()
           << " warps in a role of " << warpgroups << " warpgroups"
           << (isElected ? ", elected" : "");
  return success();
}

bool attn::tile::canGatherRows(MemRefType source, SharedType dest) {
  int64_t columns = source.getShape().back();
  return !ShapedType::isDynamic(columns) && !dest.isRow() &&
         columns * dest.getElementBytes() % attn::kChunkBytes == 0 &&
         dest.getNumSlabs() * dest.getSwizzle() <= attn::kLanes * attn::kChunkBytes;
}

LogicalResult GatherAsyncOp::verify() {
  auto dest = cast<SharedType>(getDest().getType());
  if (failed(verifyBox(*this, getSource(), getOffsets().size(), dest)))
    return failure();
  // gather_async_c1: its rows are the tile's, found at the same position of the same memory
  auto found = getRows().getDefiningOp<FindRowsOp>();
  if (!found || found.getSource() != getSource() || found.getOffsets() != getOffsets() ||
      getRows().getType().getCount() != dest.getNumRows())
    return emitOpError("expected ")
           << dest.getNumRows() << " rows that tile.find_rows finds at the same position, got "
           << getRows().getType();
  // gather_async_c2: a row has pieces of 16 bytes, at most as many as a warp has lanes
  if (!canGatherRows(cast<MemRefType>(getSource().getType()), dest))
    return emitOpError("expected rows of a constant multiple of ")
           << attn::kChunkBytes << " bytes, at most " << attn::kLanes * attn::kChunkBytes
           << ", got " << getSource().getType() << " and " << dest;
  return success();
}

LogicalResult AddAsyncOp::verify() {
  auto tile = cast<RankedTensorType>(getValue().getType());
  auto place = cast<SharedType>(getPlace().getType());
  // add_async_c1: what is added is f32, in `acc`
  if (!tile.getElementType().isF32() || !isa_and_nonnull<AccAttr>(tile.getEncoding()))
    return emitOpError("expected a tile of f32 in #tile.acc, got ") << tile;
  if (failed(verifyBox(*this, getDest(), getOffsets().size(), place)))
    return failure();
  // add_async_c2: the place has the tile's shape and element type, in whole slabs
  if (place.getShape() != tile.getShape() || place.getElementType() != tile.getElementType() ||
      place.getNumColumns() % place.getSlabColumns() != 0)
    return emitOpError("expected a place of whole slabs, of the shape and element type of ")
           << tile << ", got " << place;
  // add_async_c3: nobody else uses the place
  for (Operation *user : getPlace().getUsers())
    if (!isa<AddAsyncOp>(user)) {
      InFlightDiagnostic error = emitOpError("expected a place that only additions use, got '")
                                 << user->getName() << "'";
      error.attachNote(user->getLoc()) << "it is used here";
      return error;
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static SmallVector<int64_t, 2> getOperandShape(Type type, bool isTransposed) {
  auto shared = dyn_cast<SharedType>(type);
  ArrayRef<int64_t> shape = shared ? shared.getShape() : cast<RankedTensorType>(type).getShape();
  SmallVector<int64_t, 2> result(shape);
  if (isTransposed)
    std::reverse(result.begin(), result.end());
  return result;
}

static Type getOperandElement(Type type) {
  auto shared = dyn_cast<SharedType>(type);
  return shared ? shared.getElementType() : cast<RankedTensorType>(type).getElementType();
}

template <typename OpT>
static LogicalResult verifyKept(OpT op, RankedTensorType kept, RankedTensorType result) {
  // mma_c6: kept are the first columns of an lhs of 16 bits in shared memory, not transposed, in
  // steps of 16, and with layouts in `operand_a`
  auto lhs = dyn_cast<SharedType>(op.getLhs().getType());
  auto acc = dyn_cast_or_null<AccAttr>(result.getEncoding());
  Attribute layout = acc ? acc.getOperand() : Attribute();
  if (lhs && !op.getTransposeLhs() && kept.getRank() == 2 && lhs.getElementBytes() == 2 &&
      kept.getElementType() == lhs.getElementType() && kept.getDimSize(0) == result.getDimSize(0) &&
      kept.getDimSize(1) <= lhs.getNumColumns() && kept.getDimSize(1) % 16 == 0 &&
      kept.getEncoding() == layout)
    return success();
  return op.emitOpError("expected kept columns in multiples of 16 of a shared lhs of 16 bits that "
                        "is not transposed")
         << (layout ? ", in layout #tile.operand_a" : "") << ", got " << kept << " of "
         << op.getLhs().getType();
}

template <typename OpT> static LogicalResult verifyProduct(OpT op, RankedTensorType result) {
  Type lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
  for (Type type : {lhs, rhs}) {
    // mma_c1: operands are matrices, shared ones a single stage
    auto shared = dyn_cast<SharedType>(type);
    if (shared ? shared.getStages() != 1 || shared.isRow()
               : cast<RankedTensorType>(type).getRank() != 2)
      return op.emitOpError("expected matrices (one stage of a ring) as operands, got ") << type;
  }
  SmallVector<int64_t, 2> mk = getOperandShape(lhs, op.getTransposeLhs()),
                          kn = getOperandShape(rhs, op.getTransposeRhs());
  // mma_c2: M x K times K x N gives M x N
  if (result.getRank() != 2 || mk[1] != kn[0] || result.getDimSize(0) != mk[0] ||
      result.getDimSize(1) != kn[1])
    return op.emitOpError("expected M x K times K x N to give M x N, got ")
           << mk[0] << "x" << mk[1] << " times " << kn[0] << "x" << kn[1] << " and " << result;
  // mma_c3: operands have one float type of 16 bits, float types of 8, or are tiles of f32 without
  // layouts; the result is f32
  Type element = getOperandElement(lhs);
  bool isWide = element.isF32() && isa<RankedTensorType>(lhs) && isa<RankedTensorType>(rhs) &&
                !result.getEncoding();
  auto isNarrow = [](Type type) {
    return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
  };
  bool areNarrow = isNarrow(element) && isNarrow(getOperandElement(rhs));
  if (!areNarrow && (element != getOperandElement(rhs) || !isa<FloatType>(element) ||
                     !(isWide || element.getIntOrFloatBitWidth() == 16)))
    return op.emitOpError("expected one float type of 16 bits, or float types of 8 (or f32 without "
                          "layouts), for both operands, got ")
           << element << " and " << getOperandElement(rhs);
  if (!result.getElementType().isF32())
    return op.emitOpError("expected an f32 result, got ") << result;
  // mma_c4: the accumulator has the result's type
  if (op.getAcc() && getTileType(op.getAcc().getType()) != result)
    return op.emitOpError("expected an accumulator of type ")
           << result << ", got " << op.getAcc().getType();
  // mma_c7: what both operands sum over has one order: quads in both, or in none
  auto sharedRhs = dyn_cast<SharedType>(rhs);
  bool hasQuads = sharedRhs && sharedRhs.getQuads();
  if (auto sharedLhs = dyn_cast<SharedType>(lhs);
      (sharedLhs && sharedLhs.getQuads() != hasQuads) || (hasQuads && !op.getTransposeRhs()))
    return op.emitOpError("expected both operands to sum over columns in one order, got ")
           << lhs << " and " << rhs;
  // mma_c5: with layouts, the result is in `acc` and a register lhs in its `operand_a`, not
  // transposed
  if (result.getEncoding()) {
    auto acc = dyn_cast<AccAttr>(result.getEncoding());
    if (!acc)
      return op.emitOpError("expected layout #tile.acc of the result, got ")
             << result.getEncoding();
    if (auto tile = dyn_cast<RankedTensorType>(lhs);
        tile && (tile.getEncoding() != acc.getOperand(hasQuads) || op.getTransposeLhs()))
      return op.emitOpError("expected lhs in layout ")
             << acc.getOperand(hasQuads) << ", not transposed, got " << tile;
  }
  return op.getKept() ? verifyKept(op, cast<RankedTensorType>(op.getKept().getType()), result)
                      : success();
}

LogicalResult MmaOp::verify() { return verifyProduct(*this, cast<RankedTensorType>(getType())); }

LogicalResult MmaAsyncOp::verify() {
  RankedTensorType result = cast<InFlightType>(getType()).getTile();
  if (failed(verifyProduct(*this, result)))
    return failure();
  // mma_async_c1: the result of a product in flight has a layout
  if (!result.getEncoding())
    return emitOpError("expected a result in layout #tile.acc, got ") << result;
  // mma_async_c2: K is a multiple of 32 bytes, of one instruction
  Type element = getOperandElement(getRhs().getType());
  int64_t k = getOperandShape(getRhs().getType(), getTransposeRhs())[0],
          step = getMachine(*this).product.sumBytes * 8 / element.getIntOrFloatBitWidth();
  if (k % step != 0)
    return emitOpError("expected K in multiples of ") << step << ", got " << k;
  // mma_async_c3: operands of 8 bits have K contiguous in memory
  if (element.getIntOrFloatBitWidth() == 8 && (getTransposeLhs() || !getTransposeRhs()))
    return emitOpError(
        "expected 8-bit operands with K contiguous (lhs not transposed, rhs transposed)");
  return success();
}

LogicalResult MmaWaitOp::verify() {
  // mma_wait_c1: each result is its operand's tile
  if (getValues().size() != getResults().size())
    return emitOpError("expected as many results as operands, got ") << getResults().size();
  for (auto [value, result] : llvm::zip_equal(getValues(), getResults()))
    if (getTileType(value.getType()) != result.getType())
      return emitOpError("expected result ")
             << getTileType(value.getType()) << ", got " << result.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       result = cast<RankedTensorType>(getType());
  // reduce_c1: M x N to M, or to M x 4, of one element type
  bool isPartial = result.getRank() == 2 && result.getDimSize(1) == 4;
  if (source.getRank() != 2 || (result.getRank() != 1 && !isPartial) ||
      source.getDimSize(0) != result.getDimSize(0) ||
      source.getElementType() != result.getElementType())
    return emitOpError("expected M x N to M (or M x 4) of one element type, got ")
           << source << " to " << result;
  // reduce_c3: the initial value has the result's type
  if (getInit() && getInit().getType() != result)
    return emitOpError("expected an initial value of type ")
           << result << ", got " << getInit().getType();
  // reduce_c2: from `acc` to its row or quad, from a quad or chunks to their row, or no layouts at
  // all
  MLIRContext *context = getContext();
  Attribute from = source.getEncoding(), to = result.getEncoding();
  if (!from && !to)
    return success();
  if (auto acc = dyn_cast_or_null<AccAttr>(from);
      acc && (to == RowAttr::get(context, acc) || to == QuadAttr::get(context, acc)))
    return success();
  if (auto quad = dyn_cast_or_null<QuadAttr>(from);
      quad && to == RowAttr::get(context, quad.getOf()))
    return success();
  if (auto chunked = dyn_cast_or_null<ChunkedAttr>(from);
      chunked && to == RowAttr::get(context, chunked.getOf()))
    return success();
  return emitOpError("expected the row or quad of the source's accumulator layout, got ")
         << source << " to " << result;
}

LogicalResult SumDiagonalsOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  // sum_diagonals_c1: a matrix of f32, of sixteen rows or a multiple
  if (type.getRank() != 2 || !type.getElementType().isF32() || type.getDimSize(0) % 16 != 0)
    return emitOpError("expected a matrix of f32 with a multiple of 16 rows, got ") << type;
  // sum_diagonals_c2: in `acc` if it has a layout
  if (type.getEncoding() && !isa<AccAttr>(type.getEncoding()))
    return emitOpError("expected layout `acc`, got ") << type;
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto result = cast<RankedTensorType>(getType());
  // broadcast_c1: the element type stays
  if (getElementTypeOrSelf(getSource().getType()) != result.getElementType())
    return emitOpError("expected elements of type ")
           << result.getElementType() << ", got " << getSource().getType();
  auto source = dyn_cast<RankedTensorType>(getSource().getType());
  if (!source)
    return success();
  // broadcast_c2: a scalar, or M to M x N
  if (source.getRank() != 1 || result.getRank() != 2 ||
      source.getDimSize(0) != result.getDimSize(0))
    return emitOpError("expected M to M x N, got ") << source << " to " << result;
  // broadcast_c3: a row goes to the accumulator or the blocks that it is of, or to its quad
  Attribute from = source.getEncoding(), to = result.getEncoding();
  auto row = dyn_cast_or_null<RowAttr>(from);
  auto quad = dyn_cast_or_null<QuadAttr>(to);
  if ((!from && !to) || (row && to == row.getOf()) || (row && quad && quad.getOf() == row.getOf()))
    return success();
  return emitOpError("expected the row of the result's layout, got ") << source << " to " << result;
}

LogicalResult CoordOp::verify() {
  auto result = cast<RankedTensorType>(getType());
  // coord_c1: a tile of indices that has the dimension
  if (!result.getElementType().isIndex() || getDim() >= uint64_t(result.getRank()))
    return emitOpError("expected a tile of index with dimension ")
           << getDim() << ", got " << result;
  return success();
}

LogicalResult VoteOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  // vote_c1: a tile of i1
  if (!source.getElementType().isInteger(1))
    return emitOpError("expected a tile of i1, got ") << source;
  // vote_c2: with a layout, it is of one warpgroup, which is the block
  bool isAlone = !hasLayout(source) || getLayout(source).getNumWarps() == 4;
  if (!isAlone || (*this)->getParentOfType<SpecializeOp>())
    return emitOpError("expected a tile of a block of one warpgroup, got ") << source;
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       result = cast<RankedTensorType>(getType());
  // convert_layout_c1: shape and element type stay, and both tiles have layouts
  if (source.getShape() != result.getShape() ||
      source.getElementType() != result.getElementType() || !hasLayout(source) ||
      !hasLayout(result))
    return emitOpError("expected two layouts of the same shape and element type, got ")
           << source << " to " << result;
  return success();
}

//===----------------------------------------------------------------------===//
// Rings and barriers
//===----------------------------------------------------------------------===//

LogicalResult UnitSlotOp::verify() {
  // unit_slot_c1: there is a barrier for each unit of the role
  RoleInfo role = getRole(*this);
  int64_t units = getMachine(*this).getUnits(role.warpgroups);
  if (!role.isElected && getType().getStages() == units)
    return success();
  return emitOpError("expected a barrier for each of ")
         << units << " units of a role that is not elected, got " << getType().getStages();
}

LogicalResult StageOp::verify() {
  auto ring = cast<SharedType>(getRing().getType());
  // stage_c1: slot and result belong to the ring
  if (cast<SlotType>(getSlot().getType()).getStages() != ring.getStages() ||
      getType() != ring.getStageType())
    return emitOpError("expected a slot of ")
           << ring.getStages() << " stages and result " << ring.getStageType() << ", got "
           << getSlot().getType() << " and " << getType();
  return success();
}

/// barrier_c2: a slot has the barrier's stages; without a slot the barrier has one
static LogicalResult verifySlot(Operation *op, Value barrier, Value slot) {
  int64_t stages = cast<BarrierType>(barrier.getType()).getStages();
  int64_t slots = slot ? cast<SlotType>(slot.getType()).getStages() : 1;
  if (stages == slots)
    return success();
  return op->emitOpError("expected a slot of ") << stages << " stages, got " << slots;
}

LogicalResult BarrierArriveOp::verify() { return verifySlot(*this, getBarrier(), getSlot()); }
LogicalResult ArriveLandedOp::verify() { return verifySlot(*this, getBarrier(), getSlot()); }
LogicalResult BarrierWaitOp::verify() { return verifySlot(*this, getBarrier(), getSlot()); }

LogicalResult BarrierExpectOp::verify() {
  // barrier_expect_c1: fewer than 2^20 bytes, as far as the hardware counts
  if (getBytes() >= 1 << 20)
    return emitOpError("expected fewer than 1048576 bytes, got ") << int64_t(getBytes());
  return verifySlot(*this, getBarrier(), getSlot());
}

LogicalResult CopyAsyncOp::verify() {
  return failure(failed(verifyBox(*this, getSource(), getOffsets().size(), getDest().getType())) ||
                 failed(verifySlot(*this, getBarrier(), getSlot())));
}

LogicalResult NamedBarrierOp::verify() {
  // named_barrier_c1: 32 to 1024 threads in whole warps
  if (int64_t threads = getThreads();
      threads < attn::kLanes || threads > attn::kBlockThreads || threads % attn::kLanes != 0)
    return emitOpError("expected ") << attn::kLanes << " to " << attn::kBlockThreads
                                    << " threads in whole warps, got " << threads;
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

LogicalResult SpecializeOp::verify() {
  size_t count = getRoles().size();
  // specialize_c1: at least two roles, each with all of its attributes
  if (count < 2 || getNames().size() != count || getWarpgroups().size() != count ||
      getRegisters().size() != count || getElected().size() != count)
    return emitOpError("expected at least two roles, each with all of its attributes, got ")
           << count;
  const attn::Machine &machine = getMachine(*this);
  int64_t warpgroups = 0, registers = 0;
  for (size_t role = 0; role < count; ++role) {
    // specialize_c2: a role has 1 to 8 warpgroups and 24 to 256 registers in steps of 8
    int64_t budget = getRegisters()[role];
    int64_t size = getWarpgroups()[role];
    if (!machine.allowsRole(size, budget))
      return emitOpError("expected ")
             << machine.listRoles() << ", got " << size << " and " << budget << " in role '"
             << cast<StringAttr>(getNames()[role]).getValue() << "'";
    warpgroups += size;
    registers += size * machine.warpgroupThreads * budget;
  }
  // specialize_c3: all budgets together fit what the threads of the block start with
  int64_t most = machine.getBlockRegisters(warpgroups, getResident(*this));
  // A role would wait for more without end: nobody gives it back.
  if (registers > most)
    return emitOpError("expected at most ") << most << " registers in a block, got " << registers;
  // specialize_c4: roles stand directly in a kernel and are its warpgroups
  auto function = dyn_cast<FunctionOpInterface>((*this)->getParentOp());
  if (!function)
    return emitOpError("expected it directly in a kernel, got '")
           << (*this)->getParentOp()->getName() << "' around it";
  auto kernel = function->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  if (kernel && kernel.getWarpgroups() != warpgroups)
    return emitOpError("expected roles for the ")
           << kernel.getWarpgroups() << " warpgroups of the kernel, got " << warpgroups;
  return success();
}
