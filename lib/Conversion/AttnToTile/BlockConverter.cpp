//===- BlockConverter.cpp - the body of a grid as a program of tiles ---------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/BlockConverter.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/PartialSums.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

BlockConverter::BlockConverter(func::FuncOp source, scf::ForallOp grid, func::FuncOp kernel)
    : grid(grid), builder(grid.getLoc(), OpBuilder::atBlockBegin(&kernel.getBody().front())),
      rows(*getConstantIntValue(grid.getMixedStep().back())), source(source), kernel(kernel),
      partialSums(findPartialSums(grid)) {}

RankedTensorType BlockConverter::getTileType(Operation *user, Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type ? type.getShape() : ArrayRef<int64_t>());
  if (!shape.empty() && ShapedType::isDynamic(shape.front()))
    shape.front() = rows;
  bool isTile = !shape.empty() && shape.size() <= 2 &&
                llvm::all_of(shape, [](int64_t extent) { return extent > 0; });
  if (!isTile) {
    user->emitOpError("expected tensors of rows by static columns in a block, got ")
        << tensor.getType();
    return {};
  }
  if (partialSums.contains(tensor))
    shape = {rows, kQuadLanes};
  return RankedTensorType::get(shape, type.getElementType());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void BlockConverter::moveBeforeLoops() {
  Block *entry = &kernel.getBody().front(), *block = builder.getInsertionBlock();
  if (block != entry)
    builder.setInsertionPoint(entry->findAncestorOpInBlock(*block->getParentOp()));
}

Value BlockConverter::lookup(Operation *user, Value value) {
  if (Value mapped = mapping.lookupOrNull(value))
    return mapped;
  Operation *op = value.getDefiningOp();
  bool isAround = op && op->getBlock() == &source.getBody().front();
  if (!isAround) {
    user->emitOpError("expected operands that exist in a block, got a value of type ")
        << value.getType();
    return {};
  }
  // A scalar of the function: computed again at the head of the kernel, where all uses see it.
  OpBuilder::InsertionGuard guard(builder);
  moveBeforeLoops();
  if (failed(convertOp(*op)))
    return {};
  Value mapped = mapping.lookupOrNull(value);
  if (!mapped)
    user->emitOpError("expected operands with elements in a block, got the result of '")
        << op->getName() << "' of type " << value.getType();
  return mapped;
}

Value BlockConverter::lookup(Operation *user, OpFoldResult value) {
  if (auto constant = getConstantIntValue(value))
    return arith::ConstantIndexOp::create(builder, *constant);
  return lookup(user, cast<Value>(value));
}

Value BlockConverter::lookupInRegisters(Operation *user, Value value) {
  // A number for each row, such as sinks, or a matrix of parts, is loaded where it is needed.
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (const ArgumentSlice *slice = findSlice(value); slice && tensor) {
    RankedTensorType tile = getTileType(user, value);
    return tile ? builder.load(*slice, tile.getShape()) : Value();
  }
  Value mapped = lookup(user, value);
  if (!mapped || !isa<MemRefType>(mapped.getType()))
    return mapped;
  user->emitOpError("expected a tile or a number that the block has made, got an argument of type ")
      << value.getType();
  return {};
}

LogicalResult BlockConverter::cloneElementwise(Operation &op) {
  SmallVector<Type> results;
  // Of the results first: what an op makes of tiles is like them.
  std::optional<ArrayRef<int64_t>> shape;
  for (Value result : op.getResults()) {
    Type type = result.getType();
    if (isa<TensorType>(type)) {
      RankedTensorType tile = getTileType(&op, result);
      if (!tile)
        return failure();
      shape = tile.getShape();
      type = tile;
    }
    results.push_back(type);
  }
  SmallVector<Value> operands;
  for (Value operand : op.getOperands()) {
    Value mapped = lookupInRegisters(&op, operand);
    if (!mapped)
      return failure();
    if (auto tile = dyn_cast<RankedTensorType>(mapped.getType());
        tile && shape && tile.getShape() != *shape)
      return op.emitOpError("expected operands of the shape ")
             << *shape << " of the result's tile, got " << tile;
    operands.push_back(mapped);
  }
  Operation *clone = builder.clone(op, mapping);
  // A tile that was loaded for this op alone is mapped to nothing.
  clone->setOperands(operands);
  for (auto [result, type] : llvm::zip_equal(clone->getResults(), results))
    result.setType(type);
  return success();
}

/// One of two tiles, by a condition of the block: the same for all elements.
LogicalResult BlockConverter::convertSelect(arith::SelectOp op) {
  if (!isa<TensorType>(op.getType()) || isa<TensorType>(op.getCondition().getType()))
    return cloneElementwise(*op);
  RankedTensorType tile = getTileType(op, op.getResult());
  Value condition = lookup(op, op.getCondition()), yes = lookupInRegisters(op, op.getTrueValue()),
        no = lookupInRegisters(op, op.getFalseValue());
  if (!tile || !condition || !yes || !no)
    return failure();
  for (Value value : {yes, no})
    if (value.getType() != tile)
      return op.emitOpError("expected tiles of type ") << tile << ", got " << value.getType();
  condition = builder.splat(condition, tile.getShape());
  mapping.map(op.getResult(), arith::SelectOp::create(builder, condition, yes, no).getResult());
  return success();
}

LogicalResult BlockConverter::convertConstant(arith::ConstantOp op) {
  if (!isa<TensorType>(op.getType()))
    return cloneElementwise(*op);
  RankedTensorType tile = getTileType(op, op);
  if (!tile)
    return failure();
  auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
  if (!splat)
    return op.emitOpError("expected one number for all elements of a tile, got ") << op.getValue();
  auto value = DenseElementsAttr::get(tile, splat.getSplatValue<Attribute>());
  mapping.map(op.getResult(), arith::ConstantOp::create(builder, value).getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value> BlockConverter::getUnadded(Value sum) {
  if (auto it = unadded.find(sum); it != unadded.end())
    return it->second;
  return SmallVector<Value>(captured->countByRow(), builder.constant(0, {rows, kQuadLanes}));
}

LogicalResult BlockConverter::appendCarried(Operation *user, Value value,
                                            SmallVectorImpl<Value> &carried) {
  if (isSum(value)) {
    llvm::append_range(carried, getUnadded(value));
    return success();
  }
  carried.push_back(lookupInRegisters(user, value));
  return success(carried.back() != nullptr);
}

void BlockConverter::mapCarried(ValueRange values, ValueRange carried) {
  for (Value value : values) {
    size_t count = isSum(value) ? captured->countByRow() : 1;
    if (isSum(value))
      setUnadded(value, carried.take_front(count));
    else
      mapping.map(value, carried.front());
    carried = carried.drop_front(count);
  }
}

LogicalResult BlockConverter::convertYield(scf::YieldOp op) {
  SmallVector<Value> carried;
  for (Value operand : op.getOperands())
    if (failed(appendCarried(op, operand, carried)))
      return failure();
  scf::YieldOp::create(builder, carried);
  return success();
}

LogicalResult BlockConverter::convertTurn(scf::ForOp op, unsigned dim) {
  Value first = lookup(op, op.getLowerBound()), step = lookup(op, op.getStep());
  if (!first || !step)
    return failure();
  constexpr gpu::Dimension dimensions[] = {gpu::Dimension::z, gpu::Dimension::y, gpu::Dimension::x};
  Value turn = gpu::BlockIdOp::create(builder, dimensions[dim]);
  mapping.map(op.getInductionVar(), builder.createOrFold<arith::AddIOp>(
                                        first, builder.createOrFold<arith::MulIOp>(turn, step)));
  SmallVector<Value> carried;
  for (Value init : op.getInitArgs())
    if (failed(appendCarried(op, init, carried)))
      return failure();
  mapCarried(op.getRegionIterArgs(), carried);
  for (Operation &inner : op.getBody()->without_terminator())
    if (failed(convertOp(inner)))
      return failure();
  carried.clear();
  for (Value yielded : op.getYieldedValues())
    if (failed(appendCarried(op, yielded, carried)))
      return failure();
  mapCarried(op.getResults(), carried);
  return success();
}

LogicalResult BlockConverter::convertFor(scf::ForOp op) {
  if (captured)
    if (auto turns = captured->loops.find(op); turns != captured->loops.end())
      return convertTurn(op, turns->second);
  SmallVector<Value> bounds, inits;
  for (Value bound : {op.getLowerBound(), op.getUpperBound(), op.getStep()})
    bounds.push_back(lookup(op, bound));
  for (Value init : op.getInitArgs())
    if (failed(appendCarried(op, init, inits)))
      return failure();
  if (llvm::is_contained(bounds, Value()))
    return failure();
  auto loop = scf::ForOp::create(builder, bounds[0], bounds[1], bounds[2], inits);
  // Of a loop that carries nothing the builder ends the body.
  loop.getBody()->clear();
  mapping.map(op.getInductionVar(), loop.getInductionVar());
  mapCarried(op.getRegionIterArgs(), loop.getRegionIterArgs());
  mapCarried(op.getResults(), loop.getResults());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  return convertBody(*op.getBody());
}

LogicalResult BlockConverter::convertIf(scf::IfOp op) {
  Value condition = lookup(op, op.getCondition());
  if (!condition)
    return failure();
  SmallVector<Type> types;
  for (OpResult result : op->getResults()) {
    if (isSum(result)) {
      auto row = RankedTensorType::get({rows, kQuadLanes}, builder.getF32Type());
      types.append(captured->countByRow(), row);
      continue;
    }
    bool isTensor = isa<RankedTensorType>(result.getType());
    RankedTensorType tile = isTensor ? getTileType(op, result) : RankedTensorType();
    if (isTensor && !tile)
      return failure();
    types.push_back(tile ? tile : result.getType());
  }
  auto branch =
      scf::IfOp::create(builder, types, condition, /*withElseRegion=*/!op.getElseRegion().empty());
  mapCarried(op.getResults(), branch.getResults());
  OpBuilder::InsertionGuard guard(builder);
  for (auto [from, to] : llvm::zip(op->getRegions(), branch->getRegions())) {
    if (from.empty())
      continue;
    Block &block = to.front();
    block.clear();
    builder.setInsertionPointToEnd(&block);
    if (failed(convertBody(from.front())))
      return failure();
  }
  return success();
}

/// Searches (scf.while) and other control flow on scalars: cloned whole, reads of captured tensors
/// become loads.
static LogicalResult cloneScalarControl(OpBuilder &builder, Operation &op, IRMapping &mapping,
                                        llvm::function_ref<Value(Operation *, Value)> lookup) {
  WalkResult free = op.walk([&](Operation *inner) -> WalkResult {
    if (!isa<arith::ArithDialect, affine::AffineDialect, math::MathDialect, scf::SCFDialect,
             tensor::TensorDialect>(inner->getDialect()))
      return inner->emitOpError("has no form on tiles");
    for (Type type : inner->getResultTypes())
      if (isa<TensorType>(type))
        return inner->emitOpError("expected scalars in control flow on scalars, got ") << type;
    for (Value operand : inner->getOperands()) {
      Operation *parent = operand.getParentBlock()->getParentOp();
      if (op.isAncestor(parent))
        continue;
      Value value = lookup(&op, operand);
      if (!value)
        return failure();
      bool isRead = isa<tensor::ExtractOp>(inner) && isa<MemRefType>(value.getType());
      if (isa<TensorType>(operand.getType()) && !isRead)
        return inner->emitOpError("expected control flow on scalars to read elements of arguments, "
                                  "got ")
               << operand.getType();
    }
    return success();
  });
  if (free.wasInterrupted())
    return failure();
  Operation *clone = builder.clone(op, mapping);
  clone->walk([&](tensor::ExtractOp extract) {
    OpBuilder inner(extract);
    // The operand is a memref already, which the op's own accessor would refuse.
    Value load = memref::LoadOp::create(inner, extract.getLoc(), extract->getOperand(0),
                                        extract.getIndices());
    extract.replaceAllUsesWith(load);
    extract.erase();
  });
  return success();
}

LogicalResult BlockConverter::convertBody(Block &body) {
  for (Operation &op : body)
    if (failed(convertOp(op)))
      return failure();
  return success();
}

LogicalResult BlockConverter::convertFill(linalg::FillOp op) {
  if (op.hasPureBufferSemantics())
    return op.emitOpError("expected a tensor to fill, got ") << op.getOutputs()[0].getType();
  Value scalar = lookup(op, op.getInputs()[0]);
  RankedTensorType type = scalar ? getTileType(op, op.getResult(0)) : RankedTensorType();
  if (!type)
    return failure();
  mapping.map(op.getResult(0), builder.splat(scalar, type.getShape()));
  return success();
}

LogicalResult BlockConverter::convertOp(Operation &op) {
  builder.setLoc(op.getLoc());
  if (isa<AttnDialect>(op.getDialect()))
    return convertAttention(*this, op);
  auto convertOther = [&](Operation *) -> LogicalResult {
    bool isPlain =
        op.getNumRegions() == 0 &&
        isa<arith::ArithDialect, affine::AffineDialect, math::MathDialect>(op.getDialect());
    if (isPlain)
      return cloneElementwise(op);
    return op.emitOpError("has no form on tiles");
  };
  auto convertControl = [&](Operation *) {
    return cloneScalarControl(builder, op, mapping,
                              [&](Operation *user, Value value) { return lookup(user, value); });
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](tensor::ExtractSliceOp slice) { return convertSlice(slice); })
      .Case([&](tensor::ParallelInsertSliceOp insert) { return convertInsert(insert); })
      .Case([&](tensor::DimOp dim) { return convertDim(dim); })
      .Case([&](tensor::ExtractOp extract) { return convertExtract(extract); })
      .Case([&](tensor::EmptyOp) { return success(); })
      // Stored where they are inserted.
      .Case([&](tensor::FromElementsOp list) {
        return list.getType().getRank() == 1
                   ? success()
                   : list.emitOpError("expected numbers one behind the other, got ")
                         << list.getType();
      })
      .Case([&](linalg::FillOp fill) { return convertFill(fill); })
      .Case([&](linalg::GenericOp sum) { return convertSum(*this, sum); })
      .Case([&](arith::ConstantOp constant) { return convertConstant(constant); })
      .Case([&](arith::SelectOp select) { return convertSelect(select); })
      .Case([&](scf::ForOp loop) { return convertFor(loop); })
      .Case([&](scf::InParallelOp) { return convertBody(op.getRegion(0).front()); })
      .Case([&](scf::IfOp branch) {
        bool hasTiles = llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
        return hasTiles ? convertIf(branch) : convertControl(branch);
      })
      .Case([&](scf::WhileOp loop) { return convertControl(loop); })
      .Case([&](scf::YieldOp yield) { return convertYield(yield); })
      .Default(convertOther);
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

/// Dimensions that count turns of a loop have one index of the grid's own.
LogicalResult BlockConverter::convertOwnedIds(ValueRange ivs) {
  constexpr gpu::Dimension dimensions[] = {gpu::Dimension::z, gpu::Dimension::y, gpu::Dimension::x};
  for (auto [iv, dimension, size, step] :
       llvm::zip_equal(ivs, dimensions, grid.getMixedUpperBound(), grid.getMixedStep())) {
    Value index = arith::ConstantIndexOp::create(builder, 0);
    if (!isOneInteger(size))
      index = builder.createOrFold<arith::MulIOp>(
          gpu::BlockIdOp::create(builder, dimension),
          arith::ConstantIndexOp::create(builder, *getConstantIntValue(step)));
    mapping.map(iv, index);
  }
  BlockArgument gradient = grid.getRegionIterArgs().front();
  captured->part.memref = mapping.lookup(gradient);
  int64_t rank = cast<MemRefType>(captured->part.memref.getType()).getRank();
  captured->part.position.assign(rank, arith::ConstantIndexOp::create(builder, 0));
  return success();
}

bool attn::startsHeads(scf::ForallOp grid) {
  std::optional<ArrayAttr> mapping = grid.getMapping();
  if (!mapping || grid.getRank() != 4)
    return false;
  auto ofHeads = dyn_cast<gpu::GPUBlockMappingAttr>((*mapping)[2]);
  return ofHeads && ofHeads.getBlock() == gpu::MappingId::LinearDim0;
}

/// x counts tiles of rows and, within each, parts or tiles of the keys; y counts heads, z batches.
/// With heads first they are z, x and y. The index of a tile of rows becomes its first row.
LogicalResult BlockConverter::convertBlockIds() {
  SmallVector<Value> ivs = grid.getInductionVars();
  using gpu::Dimension;
  SmallVector<Dimension> of = {Dimension::x, Dimension::y, Dimension::z};
  if (startsHeads(grid))
    of = {Dimension::z, Dimension::x, Dimension::y};
  Value tile = gpu::BlockIdOp::create(builder, of[0]);
  if (captured)
    return convertOwnedIds(ivs);
  if (ivs.size() == 4) {
    Value end = lookup(grid, grid.getMixedUpperBound().front());
    if (!end)
      return failure();
    Value step =
        arith::ConstantIndexOp::create(builder, *getConstantIntValue(grid.getMixedStep().front()));
    Value parts = builder.createOrFold<arith::CeilDivUIOp>(end, step);
    Value part = arith::RemUIOp::create(builder, tile, parts);
    mapping.map(ivs.front(), builder.createOrFold<arith::MulIOp>(part, step));
    tile = arith::DivUIOp::create(builder, tile, parts);
  }
  if (ivs.size() > 1) {
    if (ivs.size() > 2)
      mapping.map(*(ivs.end() - 3), gpu::BlockIdOp::create(builder, of[2]).getResult());
    mapping.map(*(ivs.end() - 2), gpu::BlockIdOp::create(builder, of[1]).getResult());
  }
  Value size = lookup(grid, grid.getMixedUpperBound().back());
  if (!size)
    return failure();
  Value step = arith::ConstantIndexOp::create(builder, rows);
  if (lastFirst) {
    Value one = arith::ConstantIndexOp::create(builder, 1);
    Value last =
        arith::SubIOp::create(builder, arith::CeilDivUIOp::create(builder, size, step), one);
    tile = arith::SubIOp::create(builder, last, tile);
  }
  mapping.map(ivs.back(), builder.createOrFold<arith::MulIOp>(tile, step));
  return success();
}

LogicalResult BlockConverter::convertEnd() {
  auto ends = grid.getBody()->getOps<GradEndOp>();
  if (!llvm::hasSingleElement(ends) || grid.getNumResults() != 1)
    return grid.emitOpError("expected one attn.grad_end and one result where blocks that own keys "
                            "add the gradient of queries");
  GradEndOp end = *ends.begin();
  auto insert = end->hasOneUse() ? dyn_cast<tensor::ParallelInsertSliceOp>(*end->user_begin())
                                 : tensor::ParallelInsertSliceOp();
  if (!insert)
    return end.emitOpError("expected its result to be inserted into one of the grid");
  // The ops that the ends need, in their order.
  DenseSet<Operation *> needed;
  SmallVector<Value> work(insert->getOperands().drop_front());
  if (end.getScale())
    work.push_back(end.getScale());
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == grid.getBody() && needed.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
  for (Operation &op : *grid.getBody())
    if (needed.contains(&op) && failed(convertOp(op)))
      return failure();
  SmallVector<Value> position;
  for (OpFoldResult offset : insert.getMixedOffsets())
    position.push_back(lookup(insert, offset));
  Value size = lookup(insert, insert.getMixedSizes()[2]);
  if (!size || llvm::is_contained(position, Value()))
    return failure();
  int64_t columns = cast<ShapedType>(end.getAcc().getType()).getDimSize(1);
  mapping.map(end.getAcc(), loadQuerySum(*this, position, size, columns));
  return failure(failed(convertOp(*end)) || failed(convertOp(*insert)));
}

LogicalResult BlockConverter::convert(const KernelArguments &arguments,
                                      const llvm::SmallMapVector<Value, unsigned, 2> &parts) {
  Block &entry = kernel.getBody().front();
  for (auto [value, number] : arguments)
    mapping.map(value, entry.getArgument(number));
  for (auto [count, number] : parts) {
    Value first = arith::ConstantIndexOp::create(builder, 0);
    mapping.map(count,
                memref::DimOp::create(builder, entry.getArgument(number), first).getResult());
  }
  for (auto [result, destination] : llvm::zip_equal(grid.getResults(), grid.getRegionIterArgs()))
    mapping.map(destination, mapping.lookup(result));
  bool readsSum = querySum && !querySum->isAdded;
  if (failed(convertBlockIds()) || failed(readsSum ? convertEnd() : convertBody(*grid.getBody())))
    return failure();
  func::ReturnOp::create(builder);
  return success();
}
