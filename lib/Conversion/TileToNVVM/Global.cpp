//===- Global.cpp - register tiles and memory ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Global.h"
#include "lib/Conversion/TileToNVVM/Views.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn::tile;

namespace {
/// Neighbouring registers that are neighbours in memory: one access.
struct Access {
  int64_t reg, width;
  Position position;
};

/// Where a thread's part of a tile lies in global memory.
class GlobalTile {
public:
  GlobalTile(OpBuilder &builder, Operation *op, const PatternContext &context,
             const GlobalArgument &global, RankedTensorType type, ValueRange offsets)
      : global(global), type(type), layout(getLayout(type)), loc(op->getLoc()) {
    ThreadPosition thread = context.getThreadPosition(builder, op, layout);
    int64_t rank = global.type.getRank();
    bool isVector = type.getRank() == 1;
    rowDim = isVector ? rank - 1 : rank - 2;
    headDim = rowDim - 1;
    SmallVector<Value> first(offsets);
    Value row = offsets[offsets.size() - (isVector ? 1 : 2)];
    if (global.ragged)
      first = enterSequence(builder, offsets, row);
    if (global.packed) {
      // The first head of the group, row 0: rows are found one by one.
      packedRow = LLVM::AddOp::create(builder, loc, toI32(builder, loc, row), thread.row);
      first[headDim] = LLVM::MulOp::create(builder, loc, toI32(builder, loc, first[headDim]),
                                           global.packed->group);
      if (!global.ragged)
        first[rowDim] = i32(builder, loc, 0);
    }
    base = emitAddress(builder, loc, global, first);
    if (!packedRow) {
      base = advance(builder, base, thread.row, rowDim);
      rowsLeft = global.ragged ? emitRestOf(builder, sequenceRows, row, thread.row)
                               : emitRest(builder, rowDim, row, type.getDimSize(0), thread.row);
    }
    if (isVector)
      return;
    base = advance(builder, base, thread.column, rank - 1);
    columnsLeft = emitRest(builder, rank - 1, offsets.back(), type.getDimSize(1), thread.column);
  }

  /// The accesses of each row of the thread.
  llvm::MapVector<int64_t, SmallVector<Access>> getAccessesByRow() const {
    const Digit &first = layout.getDigits().front();
    bool isContiguous = type.getRank() == 2 && hasUnitStride() && !columnsLeft;
    int64_t width =
        isContiguous && first.source == Digit::Source::Register && first.columnStride == 1
            ? first.extent
            : 1;
    width = std::min(width, 16 / getBytes(type.getElementType()));
    llvm::MapVector<int64_t, SmallVector<Access>> rows;
    for (int64_t reg = 0; reg < layout.getNumRegisters(); reg += width) {
      Position position = layout.getPosition({0, 0, reg});
      rows[position.row].push_back({reg, width, position});
    }
    return rows;
  }

  /// Whether all of the tile is inside.
  bool isWhole() const { return !rowsLeft && !columnsLeft; }
  /// i1, or null where the row is always inside.
  Value emitRowIsInside(OpBuilder &builder, int64_t row) const {
    if (!packedRow)
      return emitIsInside(builder, rowsLeft, row);
    auto [memoryRow, head] = unpackRow(builder, row);
    using Predicate = LLVM::ICmpPredicate;
    return LLVM::AndOp::create(
        builder, loc,
        LLVM::ICmpOp::create(builder, loc, Predicate::slt, memoryRow,
                             global.ragged ? sequenceRows : global.sizes[rowDim]),
        LLVM::ICmpOp::create(builder, loc, Predicate::slt, head, global.packed->group));
  }
  Value emitColumnIsInside(OpBuilder &builder, int64_t column) const {
    return emitIsInside(builder, columnsLeft, column);
  }

  Value emitPointer(OpBuilder &builder, Position position) const {
    Value pointer = base;
    if (packedRow) {
      auto [memoryRow, head] = unpackRow(builder, position.row);
      pointer = advance(builder, pointer, memoryRow, rowDim);
      pointer = advance(builder, pointer, head, headDim);
    } else if (position.row)
      pointer = advance(builder, pointer, i32(builder, loc, position.row), rowDim);
    if (position.column && hasUnitStride())
      return addBytes(builder, loc, pointer, position.column * getBytes(type.getElementType()));
    if (position.column)
      pointer =
          advance(builder, pointer, i32(builder, loc, position.column), global.type.getRank() - 1);
    return pointer;
  }

private:
  /// The indices of a row, (b, h, m[, column]), in the memory of all sequences, (row, h[, column]).
  /// Packed rows are found one by one, from the sequence's first.
  SmallVector<Value> enterSequence(OpBuilder &builder, ValueRange offsets, Value row) {
    SequenceRows sequence =
        emitSequence(builder, loc, *global.ragged, toI32(builder, loc, offsets[0]));
    sequenceRows = sequence.rows;
    rowDim = 0;
    headDim = 1;
    SmallVector<Value> indices = {sequence.begin, offsets[1]};
    if (!global.packed)
      indices[0] = LLVM::AddOp::create(builder, loc, sequence.begin, toI32(builder, loc, row));
    llvm::append_range(indices, offsets.drop_front(3));
    return indices;
  }

  /// The row in memory, and the head within its group, of a row of a packed argument.
  std::pair<Value, Value> unpackRow(OpBuilder &builder, int64_t row) const {
    int64_t slots = global.packed->slots;
    Value at = LLVM::AddOp::create(builder, loc, packedRow, i32(builder, loc, row));
    return {LLVM::LShrOp::create(builder, loc, at, i32(builder, loc, llvm::Log2_64(slots))),
            LLVM::AndOp::create(builder, loc, at, i32(builder, loc, slots - 1))};
  }

  bool hasUnitStride() const {
    auto constant = global.strides.back().getDefiningOp<LLVM::ConstantOp>();
    return constant && cast<IntegerAttr>(constant.getValue()).getInt() == 1;
  }

  Value advance(OpBuilder &builder, Value pointer, Value index, int64_t dim) const {
    Value wide = LLVM::SExtOp::create(builder, loc, builder.getI64Type(), index);
    Value offset = LLVM::MulOp::create(builder, loc, wide, global.strides[dim]);
    return LLVM::GEPOp::create(builder, loc, pointer.getType(),
                               getMemoryType(type.getElementType()), pointer, ValueRange{offset});
  }

  /// size - offset - index: positions below are inside. Null if the dimension is
  /// known to hold the whole tile.
  Value emitRest(OpBuilder &builder, int64_t dim, Value offset, int64_t extent, Value index) const {
    int64_t size = global.type.getDimSize(dim);
    APInt first;
    bool isKnown = !ShapedType::isDynamic(size) && matchPattern(offset, m_ConstantInt(&first));
    if (size == extent || (isKnown && first.getSExtValue() <= size - extent))
      return {};
    return emitRestOf(builder, global.sizes[dim], offset, index);
  }
  Value emitRestOf(OpBuilder &builder, Value size, Value offset, Value index) const {
    Value rest = LLVM::SubOp::create(builder, loc, size, toI32(builder, loc, offset));
    return LLVM::SubOp::create(builder, loc, rest, index);
  }

  Value emitIsInside(OpBuilder &builder, Value rest, int64_t position) const {
    if (!rest)
      return {};
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sgt, rest,
                                i32(builder, loc, position));
  }

  const GlobalArgument &global;
  RankedTensorType type;
  Layout layout;
  Location loc;
  int64_t rowDim = 0, headDim = 0;
  Value base, rowsLeft, columnsLeft;
  /// Of a ragged argument: the rows of the tile's sequence.
  Value sequenceRows;
  /// The thread's first row, in a packed argument.
  Value packedRow;
};
} // namespace

namespace {
struct LoadPattern : TilePattern<LoadOp> {
  using TilePattern::TilePattern;

  Value emitLoad(OpBuilder &builder, Location loc, const GlobalTile &tile, const Access &access,
                 Type element) const {
    Type type = access.width == 1 ? element : VectorType::get({access.width}, element);
    return LLVM::LoadOp::create(builder, loc, type, tile.emitPointer(builder, access.position),
                                access.width * getBytes(element));
  }

  LogicalResult matchAndRewrite(LoadOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getSource());
    if (!hasLayout(type) || failed(global))
      return failure();
    Location loc = op.getLoc();
    Type element = getMemoryType(type.getElementType());
    GlobalTile tile(rewriter, op, context, **global, type, op.getOffsets());
    SmallVector<Value> elements(getLayout(type).getNumRegisters());
    for (auto &[row, accesses] : tile.getAccessesByRow())
      for (const Access &access : accesses) {
        Value condition = combine(rewriter, loc, tile.emitRowIsInside(rewriter, row),
                                  tile.emitColumnIsInside(rewriter, access.position.column));
        Value value;
        if (condition) {
          Type vector = access.width == 1 ? element : VectorType::get({access.width}, element);
          auto branch = scf::IfOp::create(rewriter, loc, TypeRange(vector), condition,
                                          /*withElseRegion=*/true);
          OpBuilder::InsertionGuard guard(rewriter);
          rewriter.setInsertionPointToStart(branch.thenBlock());
          scf::YieldOp::create(rewriter, loc, emitLoad(rewriter, loc, tile, access, element));
          rewriter.setInsertionPointToStart(branch.elseBlock());
          Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(vector));
          scf::YieldOp::create(rewriter, loc, zero);
          value = branch.getResult(0);
        } else {
          value = emitLoad(rewriter, loc, tile, access, element);
        }
        llvm::copy(unpack(rewriter, loc, value), elements.begin() + access.reg);
      }
    for (Value &value : elements)
      value = castIndex(rewriter, loc, type.getElementType(), value);
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type.getElementType(), elements)});
    return success();
  }
};

} // namespace

/// The addresses of a thread's elements in shared memory: one for each pair of neighbours, or for
/// each register that packs them. All registers of a thread lie in rows that agree modulo 8. Their
/// columns agree modulo 16 bytes, or 32 for f32, up to the thread's own part. So the swizzle is one
/// XOR with a value of the thread.
static LogicalResult accessShared(Operation *op, const PatternContext &context,
                                  RankedTensorType type, SharedType shared, Value pointer,
                                  OpBuilder &rewriter,
                                  llvm::function_ref<void(Value address, int64_t index)> access) {
  int64_t bytes = shared.getElementBytes(), swizzle = shared.getSwizzle();
  bool isPacked = bytes <= 2;
  if (!(isPacked ? isa<AccAttr, OperandAAttr>(type.getEncoding())
                 : isa<AccAttr>(type.getEncoding()) && bytes == 4))
    return op->emitOpError("expected 8- or 16-bit elements in layout #tile.acc or "
                           "#tile.operand_a, or 32-bit ones in #tile.acc, got ")
           << type;
  Location loc = op->getLoc();
  Layout layout = getLayout(type);
  ThreadPosition thread = context.getThreadPosition(rewriter, op, layout);
  Value row = LLVM::MulOp::create(rewriter, loc, thread.row, i32(rewriter, loc, swizzle));
  Value column = LLVM::MulOp::create(rewriter, loc, thread.column, i32(rewriter, loc, bytes));
  Value inner = column;
  if (!isPacked)
    inner = LLVM::AndOp::create(rewriter, loc, column, i32(rewriter, loc, 15));
  Value start =
      addBytes(rewriter, loc, pointer, LLVM::AddOp::create(rewriter, loc, row, inner).getResult());
  Value phase = LLVM::LShrOp::create(rewriter, loc, row, i32(rewriter, loc, 7));
  phase = LLVM::AndOp::create(rewriter, loc, phase, i32(rewriter, loc, swizzle / 16 - 1));
  phase = LLVM::ShlOp::create(rewriter, loc, phase, i32(rewriter, loc, 4));
  // Two lanes of a quad have a chunk of 16 bytes, the other two the next.
  if (!isPacked)
    phase = LLVM::XOrOp::create(rewriter, loc, phase,
                                LLVM::AndOp::create(rewriter, loc, column, i32(rewriter, loc, 16)));
  // Out of loops, each of the addresses would take a register.
  phase = emitTiedAsm(rewriter, loc, "", {phase}).front();
  int64_t perAccess = isPacked ? 4 / bytes : 2;
  for (int64_t reg = 0; reg < layout.getNumRegisters(); reg += perAccess) {
    Position position = layout.getPosition({0, 0, reg});
    int64_t byte = position.column * bytes;
    Value chunk = LLVM::XOrOp::create(rewriter, loc, phase, i32(rewriter, loc, byte % swizzle));
    Value address = addBytes(rewriter, loc, start, chunk);
    address = addBytes(rewriter, loc, address,
                       byte / swizzle * shared.getSlabBytes() + position.row * swizzle);
    access(address, isPacked ? reg / perAccess : reg);
  }
  return success();
}

static LogicalResult storeShared(Operation *op, const PatternContext &context,
                                 RankedTensorType type, SharedType shared, Value pointer,
                                 ValueRange values, OpBuilder &rewriter) {
  Location loc = op->getLoc();
  bool isPacked = shared.getElementBytes() <= 2;
  SmallVector<Value> elements =
      isPacked ? SmallVector<Value>(values) : unpack(rewriter, loc, values);
  return accessShared(
      op, context, type, shared, pointer, rewriter, [&](Value address, int64_t index) {
        Value value = isPacked ? elements[index] : makeVector(rewriter, loc, elements, index, 2);
        LLVM::StoreOp::create(rewriter, loc, value, address, isPacked ? 4 : 8);
      });
}

namespace {
struct LoadSharedPattern : TilePattern<LoadSharedOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(LoadSharedOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!hasLayout(type))
      return rewriter.notifyMatchFailure(op, "expected a layout");
    SharedType shared = op.getSource().getType();
    Location loc = op.getLoc();
    bool isPacked = shared.getElementBytes() <= 2;
    Type pair = VectorType::get({2}, type.getElementType());
    SmallVector<Type> registers;
    if (failed(getTypeConverter()->convertType(type, registers)))
      return failure();
    SmallVector<Value> values;
    auto load = [&](Value address, int64_t) {
      Value value = LLVM::LoadOp::create(rewriter, loc, isPacked ? registers.front() : pair,
                                         address, isPacked ? 4 : 8);
      for (int64_t i = 0; i < (isPacked ? 0 : 2); ++i)
        values.push_back(
            LLVM::ExtractElementOp::create(rewriter, loc, value, i32(rewriter, loc, i)));
      if (isPacked)
        values.push_back(value);
    };
    if (failed(
            accessShared(op, context, type, shared, adaptor.getSource().front(), rewriter, load)))
      return failure();
    rewriter.replaceOpWithMultiple(
        op, {isPacked ? values : pack(rewriter, loc, type.getElementType(), values)});
    return success();
  }
};

struct StorePattern : TilePattern<StoreOp> {
  using TilePattern::TilePattern;

  /// Whether the tile is added in pieces of 16 bytes: rows of #tile.acc in whole groups of 16
  /// columns, and memory whose rows keep to such pieces.
  static bool isAddedInPieces(StoreOp op, const GlobalTile &tile) {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    auto memory = cast<MemRefType>(op.getDest().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    auto acc = dyn_cast<AccAttr>(type.getEncoding());
    return op.getAdd() && tile.isWhole() && acc &&
           acc.getUnit().form != attn::Product::Form::Tensor && type.getDimSize(1) % 16 == 0 &&
           succeeded(memory.getStridesAndOffset(strides, offset)) && strides.back() == 1 &&
           !ShapedType::isDynamic(strides[strides.size() - 2]) &&
           strides[strides.size() - 2] % 4 == 0;
  }

  /// Of two groups of 8 columns a lane of a quad has a pair each. Lanes exchange, so that those
  /// with even numbers have four neighbours of the first group and others of the second: half as
  /// many additions, each as wide as memory takes them.
  void addInPieces(StoreOp op, const GlobalTile &tile, ArrayRef<Value> elements,
                   ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    Value bit =
        LLVM::AndOp::create(rewriter, loc, context.getKernel(op).thread, i32(rewriter, loc, 1));
    Value isOdd =
        LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::ne, bit, i32(rewriter, loc, 0));
    // From the lane's own pair of the first group: 8 columns on, two back.
    Value shift = LLVM::MulOp::create(rewriter, loc, bit, i32(rewriter, loc, int64_t(8 - 2) * 4));
    Value start = addBytes(rewriter, loc, tile.emitPointer(rewriter, {0, 0}), shift);
    SmallVector<int64_t> strides;
    int64_t offset;
    (void)cast<MemRefType>(op.getDest().getType()).getStridesAndOffset(strides, offset);
    int64_t rowBytes = strides[strides.size() - 2] * 4;
    for (auto &[row, accesses] : tile.getAccessesByRow())
      for (size_t index = 0; index + 1 < accesses.size(); index += 2) {
        const Access &first = accesses[index], &second = accesses[index + 1];
        Value piece[4];
        for (int64_t i : {0, 1}) {
          piece[i] = elements[first.reg + i];
          piece[i + 2] = elements[second.reg + i];
          emitExchange(rewriter, loc, isOdd, 1, piece[i], piece[i + 2]);
        }
        int64_t bytes = row * rowBytes + first.position.column * 4;
        emitAdd(rewriter, loc, *context.getKernel(op).machine,
                addBytes(rewriter, loc, start, bytes), piece);
      }
  }

  /// A lane's elements of a block are one piece.
  LogicalResult addFragments(StoreOp op, const GlobalArgument &global, ValueRange values,
                             ConversionPatternRewriter &rewriter) const {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    FailureOr<FragmentPlace> place = findFragments(op, context, type, global, rewriter);
    if (failed(place))
      return failure();
    Location loc = op.getLoc();
    Value pointer = emitFragmentTile(rewriter, loc, global, op.getOffsets());
    pointer = addBytes(rewriter, loc, pointer, place->warpBytes);
    pointer = addBytes(rewriter, loc, pointer, place->laneBytes);
    SmallVector<Value> elements = unpack(rewriter, loc, values);
    if (place->isInside) {
      auto branch = scf::IfOp::create(rewriter, loc, place->isInside, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    for (size_t first = 0; first < elements.size(); first += kLaneElements)
      emitAdd(rewriter, loc, *context.getKernel(op).machine,
              addBytes(rewriter, loc, pointer, int64_t(first) * kLanes * 4),
              ArrayRef(elements).slice(first, kLaneElements));
    rewriter.eraseOp(op);
    return success();
  }

  LogicalResult storeGlobal(StoreOp op, ValueRange values,
                            ConversionPatternRewriter &rewriter) const {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    FailureOr<const GlobalArgument *> global = context.getKernel(op).getArgument(op, op.getDest());
    if (failed(global))
      return failure();
    Location loc = op.getLoc();
    if ((*global)->inFragments)
      return addFragments(op, **global, values, rewriter);
    GlobalTile tile(rewriter, op, context, **global, type, op.getOffsets());
    SmallVector<Value> elements = unpack(rewriter, loc, values);
    for (Value &element : elements)
      element = castIndex(rewriter, loc, getMemoryType(type.getElementType()), element);
    if (isAddedInPieces(op, tile)) {
      addInPieces(op, tile, elements, rewriter);
      rewriter.eraseOp(op);
      return success();
    }
    Value isFirst = context.getIsFirstReplica(rewriter, op, getLayout(type));
    for (auto &[row, accesses] : tile.getAccessesByRow()) {
      OpBuilder::InsertionGuard guard(rewriter);
      if (Value condition = combine(rewriter, loc, tile.emitRowIsInside(rewriter, row), isFirst)) {
        auto branch = scf::IfOp::create(rewriter, loc, condition, /*withElseRegion=*/false);
        rewriter.setInsertionPointToStart(branch.thenBlock());
      }
      for (const Access &access : accesses) {
        OpBuilder::InsertionGuard inner(rewriter);
        if (Value condition = tile.emitColumnIsInside(rewriter, access.position.column)) {
          auto branch = scf::IfOp::create(rewriter, loc, condition, /*withElseRegion=*/false);
          rewriter.setInsertionPointToStart(branch.thenBlock());
        }
        if (op.getAdd())
          emitAdd(rewriter, loc, *context.getKernel(op).machine,
                  tile.emitPointer(rewriter, access.position),
                  ArrayRef(elements).slice(access.reg, access.width));
        else
          LLVM::StoreOp::create(rewriter, loc,
                                makeVector(rewriter, loc, elements, access.reg, access.width),
                                tile.emitPointer(rewriter, access.position),
                                access.width * getBytes(type.getElementType()));
      }
    }
    rewriter.eraseOp(op);
    return success();
  }

  LogicalResult matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!hasLayout(op.getValue().getType()))
      return rewriter.notifyMatchFailure(op, "expected a layout");
    if (auto shared = dyn_cast<SharedType>(op.getDest().getType())) {
      if (failed(storeShared(op, context, cast<RankedTensorType>(op.getValue().getType()), shared,
                             adaptor.getDest().front(), adaptor.getValue(), rewriter)))
        return failure();
      rewriter.eraseOp(op);
      return success();
    }
    return storeGlobal(op, adaptor.getValue(), rewriter);
  }
};

/// Each warp on its own, of which one lane speaks to memory: only it knows what it added before.
struct AddAsyncPattern : TilePattern<AddAsyncOp> {
  using TilePattern::TilePattern;

  /// The warp's rows of the place, from where it added before, as `store` puts them there.
  template <typename Store, typename Start>
  LogicalResult emit(AddAsyncOp op, ConversionPatternRewriter &rewriter, Store store,
                     Start start) const {
    Location loc = op.getLoc();
    auto meet = [&] { NVVM::SyncWarpOp::create(rewriter, loc, i32(rewriter, loc, -1)); };
    NVVM::CpAsyncBulkWaitGroupOp::create(rewriter, loc, 0u, rewriter.getUnitAttr());
    meet();
    if (failed(store()))
      return failure();
    NVVM::FenceProxyOp::create(
        rewriter, loc, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(rewriter.getContext(), NVVM::SharedSpace::shared_cta));
    meet();
    Value isFirst = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::eq,
                                         context.getLane(rewriter, op), i32(rewriter, loc, 0));
    auto branch = scf::IfOp::create(rewriter, loc, isFirst, /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    start();
    NVVM::CpAsyncBulkCommitGroupOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }

  /// Pieces of 16 bytes that lie as lanes do, without conflicts of banks, and one addition for all.
  LogicalResult addFragments(AddAsyncOp op, const GlobalArgument &global, Value pointer,
                             ValueRange values, ConversionPatternRewriter &rewriter) const {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    FailureOr<FragmentPlace> place = findFragments(op, context, type, global, rewriter);
    if (failed(place))
      return failure();
    Location loc = op.getLoc();
    if (place->isInside) {
      auto branch = scf::IfOp::create(rewriter, loc, place->isInside, /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    Value part = addBytes(rewriter, loc, pointer, place->warpBytes);
    auto store = [&] {
      Value own = addBytes(rewriter, loc, part, place->laneBytes);
      SmallVector<Value> elements = unpack(rewriter, loc, values);
      for (size_t first = 0; first < elements.size(); first += kLaneElements)
        LLVM::StoreOp::create(rewriter, loc,
                              makeVector(rewriter, loc, elements, first, kLaneElements),
                              addBytes(rewriter, loc, own, int64_t(first) * kLanes * 4), 16);
      return success();
    };
    return emit(op, rewriter, store, [&] {
      Value memory = emitFragmentTile(rewriter, loc, global, op.getOffsets());
      memory = addBytes(rewriter, loc, memory, place->warpBytes);
      std::string text = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], " +
                         std::to_string(place->numBytes) + ";";
      emitAsm(rewriter, loc, text, "l,l", {memory, part}, {});
    });
  }

  LogicalResult matchAndRewrite(AddAsyncOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    auto place = cast<SharedType>(op.getPlace().getType());
    FailureOr<const GlobalArgument *> global = context.getKernel(op).getArgument(op, op.getDest());
    if (failed(global))
      return failure();
    Location loc = op.getLoc();
    Value pointer = adaptor.getPlace().front();
    if ((*global)->inFragments)
      return addFragments(op, **global, pointer, adaptor.getValue(), rewriter);
    const BoxParameter *box = llvm::find_if((*global)->boxes, [&](const BoxParameter &box) {
      return box.columns == place.getSlabColumns() && box.rows == kFragmentRows &&
             box.swizzle == place.getSwizzle();
    });
    auto store = [&] {
      return storeShared(op, context, type, place, pointer, adaptor.getValue(), rewriter);
    };
    return emit(op, rewriter, store, [&] {
      Value row = context.getThreadPosition(rewriter, op, getLayout(type)).row;
      row = LLVM::AndOp::create(rewriter, loc, row, i32(rewriter, loc, -kFragmentRows));
      SmallVector<Value> coordinates;
      for (Value offset : llvm::reverse(op.getOffsets()))
        coordinates.push_back(toI32(rewriter, loc, offset));
      Value firstColumn = coordinates[0];
      coordinates[1] = LLVM::AddOp::create(rewriter, loc, coordinates[1], row);
      Value rowBytes =
          LLVM::MulOp::create(rewriter, loc, row, i32(rewriter, loc, place.getSwizzle()));
      Value part = addBytes(rewriter, loc, pointer, rowBytes);
      for (int64_t slab = 0; slab < place.getNumSlabs(); ++slab) {
        coordinates[0] = LLVM::AddOp::create(rewriter, loc, firstColumn,
                                             i32(rewriter, loc, slab * place.getSlabColumns()));
        NVVM::CpAsyncBulkTensorReduceOp::create(
            rewriter, loc, box->map, addBytes(rewriter, loc, part, slab * place.getSlabBytes()),
            NVVM::TMAReduxKind::ADD, NVVM::TMAStoreMode::TILE, coordinates,
            /*l2CacheHint=*/Value());
      }
    });
  }
};

} // namespace

void attn::tile::populateGlobalPatterns(RewritePatternSet &patterns,
                                        const PatternContext &context) {
  patterns.add<LoadPattern, LoadSharedPattern, StorePattern, AddAsyncPattern>(
      context, patterns.getContext());
  populateElementPatterns(patterns, context);
}
