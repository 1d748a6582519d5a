//===- SynchronousCopy.cpp - tile.copy: all threads of the block move 16 bytes at a time -===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

/// The swizzle: address bits from 4 on are combined with those from 7 on.
Value attn::tile::emitChunkAddress(OpBuilder &builder, Location loc, SharedType type, Value shared,
                                   Value row, Value byte) {
  auto constant = [&](int64_t value) { return i32(builder, loc, value); };
  int64_t swizzle = type.getSwizzle();
  Value slab = LLVM::UDivOp::create(builder, loc, byte, constant(swizzle));
  Value inSlab = LLVM::URemOp::create(builder, loc, byte, constant(swizzle));
  Value rowByte = LLVM::MulOp::create(builder, loc, row, constant(swizzle));
  Value phase = LLVM::LShrOp::create(builder, loc, rowByte, constant(7));
  phase = LLVM::AndOp::create(builder, loc, phase, constant(swizzle / 16 - 1));
  phase = LLVM::ShlOp::create(builder, loc, phase, constant(4));
  Value offset = LLVM::MulOp::create(builder, loc, slab, constant(type.getSlabBytes()));
  offset = LLVM::AddOp::create(builder, loc, offset, rowByte);
  offset =
      LLVM::AddOp::create(builder, loc, offset, LLVM::XOrOp::create(builder, loc, inSlab, phase));
  return addBytes(builder, loc, shared, offset);
}

namespace {
/// The copy of one chunk of 16 bytes: numbers of 32 bits in the tile, 64 in memory.
class ChunkCopy {
public:
  ChunkCopy(OpBuilder &builder, CopyOp op, const GlobalArgument &global, Value shared)
      : builder(builder), loc(op.getLoc()), global(global),
        type(cast<SharedType>(op.getDest().getType())), shared(shared),
        rowDim(global.type.getRank() - 2) {
    start = emitAddress(builder, loc, global, op.getOffsets());
    vector = VectorType::get({4}, builder.getI32Type());
    if (global.type.getDimSize(rowDim) != type.getNumRows())
      rowsLeft = LLVM::SubOp::create(builder, loc, global.sizes[rowDim],
                                     toI32(builder, loc, op.getOffsets()[rowDim]));
    if (global.type.getDimSize(rowDim + 1) != paddedColumns())
      columnsLeft = LLVM::SubOp::create(builder, loc, global.sizes[rowDim + 1],
                                        toI32(builder, loc, op.getOffsets()[rowDim + 1]));
  }

  int64_t getChunksPerRow() const { return type.getNumSlabs() * type.getSwizzle() / 16; }

  void emit(Value chunk) {
    Value perRow = constant(getChunksPerRow());
    Value row = LLVM::UDivOp::create(builder, loc, chunk, perRow);
    Value inRow = LLVM::URemOp::create(builder, loc, chunk, perRow);
    Value byte = LLVM::ShlOp::create(builder, loc, inRow, constant(4));
    Value data =
        emitLoad(row, LLVM::UDivOp::create(builder, loc, byte, constant(type.getElementBytes())));
    LLVM::StoreOp::create(builder, loc, data,
                          emitChunkAddress(builder, loc, type, shared, row, byte),
                          /*alignment=*/16);
  }

private:
  int64_t paddedColumns() const { return type.getNumSlabs() * type.getSlabColumns(); }
  Value constant(int64_t value) { return i32(builder, loc, value); }

  Value emitIsInside(Value rest, Value index) {
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sgt, rest, index);
  }

  /// The chunk, or zeros outside of the memory.
  Value emitLoad(Value row, Value column) {
    auto load = [&]() -> Value {
      Value wide = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), row);
      Value offset = LLVM::MulOp::create(builder, loc, wide, global.strides[rowDim]);
      Value first = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), column);
      offset = LLVM::AddOp::create(builder, loc, offset, first);
      Value address = LLVM::GEPOp::create(builder, loc, start.getType(), type.getElementType(),
                                          start, ValueRange{offset});
      return LLVM::LoadOp::create(builder, loc, vector, address, /*alignment=*/16);
    };
    Value condition = rowsLeft ? emitIsInside(rowsLeft, row) : Value();
    if (columnsLeft) {
      Value inside = emitIsInside(columnsLeft, column);
      condition =
          condition ? LLVM::AndOp::create(builder, loc, condition, inside).getResult() : inside;
    }
    if (!condition)
      return load();
    auto branch =
        scf::IfOp::create(builder, loc, TypeRange(vector), condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, load());
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(
        builder, loc,
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vector)).getResult());
    return branch.getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  const GlobalArgument &global;
  SharedType type;
  Value shared, start, rowsLeft, columnsLeft;
  int64_t rowDim;
  VectorType vector;
};

/// Meets before, so that nobody still reads the tile, and after, when the asynchronous proxy sees
/// it too.
struct CopyPattern : TilePattern<CopyOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(CopyOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getSource());
    if (failed(global))
      return failure();
    if (op->getParentOfType<SpecializeOp>())
      return op.emitOpError(
          "expected it outside of roles: their threads copy with tile.copy_async");
    auto type = cast<SharedType>(op.getDest().getType());
    int64_t columns = (*global)->type.getShape().back();
    if (ShapedType::isDynamic(columns) || columns * type.getElementBytes() % 16 != 0)
      return op.emitOpError("expected rows of a constant multiple of 16 bytes, got ")
             << (*global)->type;

    Location loc = op.getLoc();
    NVVM::Barrier0Op::create(rewriter, loc);
    ChunkCopy copy(rewriter, op, **global, adaptor.getDest().front());
    const Kernel &kernel = context.getKernel(op);
    int64_t threads = kernel.warpgroups * kernel.machine->warpgroupThreads,
            chunks = copy.getChunksPerRow() * type.getNumRows();
    emitShares(rewriter, loc, kernel.thread, threads, chunks,
               [&](Value chunk) { copy.emit(chunk); });
    NVVM::FenceProxyOp::create(
        rewriter, loc, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(rewriter.getContext(), NVVM::SharedSpace::shared_cta));
    NVVM::Barrier0Op::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void attn::tile::populateSynchronousCopyPatterns(RewritePatternSet &patterns,
                                                 const PatternContext &context) {
  patterns.add<CopyPattern>(context, patterns.getContext());
}
