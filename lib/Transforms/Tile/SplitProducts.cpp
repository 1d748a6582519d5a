//===- SplitProducts.cpp - tile-split-products -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Products multiply 16 bits. A number of f32 is the sum of three of bf16, which have 8 bits each:
//
//   x = x1 + x2 + x3,   x1 = bf16(x),   x2 = bf16(x - x1),   x3 = bf16(x - x1 - x2)
//
// Of the nine products of parts, the three with i + j > 4 are below the last bit of x y. Operands
// from memory are split once, by a kernel before, into scratch; those in registers where they are.
//
// Tensor cores drop what is below the last bit of a sum instead of rounding it. A sum over many
// tiles would lose that in each step, so the products of a tile make a sum of their own, which is
// added by an addition that rounds, where registers hold both sums.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanDialect.h"
#include "dialects/Tile/IR/TileClearOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn::tile {
#define GEN_PASS_DEF_SPLITPRODUCTSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static constexpr unsigned kParts = 3;

/// Which parts of two factors are multiplied, the least products first, so that the sum loses less.
static constexpr std::pair<unsigned, unsigned> kProducts[] = {{0, 2}, {1, 1}, {2, 0},
                                                              {0, 1}, {1, 0}, {0, 0}};

using Parts = std::array<Value, kParts>;

//===----------------------------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------------------------===//

/// The parts of a tile. An infinite number leaves a rest that is no number. Where `isAny`, numbers
/// may be infinite, and their rest is zero.
static Parts emitParts(ImplicitLocOpBuilder &b, Value tile, bool isAny) {
  auto type = cast<RankedTensorType>(tile.getType());
  RankedTensorType narrow = type.clone(b.getBF16Type());
  Parts parts;
  for (unsigned i : llvm::seq(kParts)) {
    parts[i] = arith::TruncFOp::create(b, narrow, tile);
    if (i + 1 == kParts)
      break;
    tile = arith::SubFOp::create(b, tile, arith::ExtFOp::create(b, type, parts[i]));
    if (!isAny || i > 0)
      continue;
    Value isNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, tile, tile);
    Value none = BroadcastOp::create(
        b, type, arith::ConstantOp::create(b, b.getF32FloatAttr(0)).getResult());
    tile = arith::SelectOp::create(b, isNumber, tile, none);
  }
  return parts;
}

/// The argument of the kernel that the tile is read from, or null.
static BlockArgument findArgument(Value tile) {
  while (auto clear = tile.getDefiningOp<ClearUnreadOp>())
    tile = clear.getValues();
  auto load = tile.getDefiningOp<LoadOp>();
  auto argument = load ? dyn_cast<BlockArgument>(load.getSource()) : BlockArgument();
  return argument && argument.getOwner()->isEntryBlock() &&
                 isa<func::FuncOp>(argument.getOwner()->getParentOp())
             ? argument
             : BlockArgument();
}

static bool isF32(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  return type && type.getElementType().isF32();
}

//===----------------------------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------------------------===//

namespace {
/// The kernels of one way, which have the same arguments.
class Way {
public:
  explicit Way(ArrayRef<func::FuncOp> kernels) : kernels(kernels) {}

  LogicalResult split(SymbolTable &symbols);

private:
  void findProducts();
  unsigned findPlaceOfParts();
  LogicalResult addParts(unsigned number);
  void makeKernel(unsigned number, SymbolTable &symbols);
  /// The same parts wherever a tile is a factor.
  const Parts &getParts(Value tile);
  void splitProduct(MmaOp product);

  SmallVector<func::FuncOp> kernels;
  SmallVector<MmaOp> products;
  /// The first of the arguments that have the parts of an argument.
  llvm::SmallMapVector<unsigned, unsigned, 4> firstPart;
  /// Where the next of them are.
  unsigned placeOfParts = 0;
  llvm::DenseMap<Value, Parts> partsOf;
};
} // namespace

void Way::findProducts() {
  for (func::FuncOp kernel : kernels)
    kernel.walk([&](MmaOp product) {
      if (!isF32(product.getLhs()))
        return;
      products.push_back(product);
      for (Value factor : {product.getLhs(), product.getRhs()})
        if (BlockArgument argument = findArgument(factor))
          firstPart[argument.getArgNumber()] = 0;
    });
}

/// A block splits so many rows, whose numbers all wait in registers: half as many as those of a
/// product.
static int64_t getRows(Operation *kernel) {
  return plan::getMachine(kernel).getWarpgroupRows() / 2;
}

/// A grid of blocks for tiles of rows of a tensor: dimensions before the last two one by one.
static ArrayAttr getGrid(Builder &b, unsigned number, MemRefType type, int64_t rows) {
  SmallVector<Attribute> factors;
  for (int64_t dim : llvm::seq(type.getRank() - 1)) {
    int64_t step = dim + 2 == type.getRank() ? rows : 1;
    factors.push_back(type.isDynamicDim(dim)
                          ? Attribute(plan::ExtentAttr::get(b.getContext(), number, dim, step,
                                                            /*multiplier=*/1, /*unit=*/1,
                                                            /*less=*/0))
                          : b.getI64IntegerAttr(llvm::divideCeil(type.getDimSize(dim), step)));
  }
  ArrayAttr one = b.getArrayAttr({});
  return b.getArrayAttr({b.getArrayAttr(factors), one, one});
}

/// Where the block's tile begins.
static SmallVector<Value> emitPosition(ImplicitLocOpBuilder &b, Value memref, int64_t rows) {
  auto type = cast<MemRefType>(memref.getType());
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  SmallVector<Value> position(type.getRank(), arith::ConstantIndexOp::create(b, 0));
  for (int64_t dim = type.getRank() - 1; dim-- > 0;) {
    Value size = memref::DimOp::create(b, memref, arith::ConstantIndexOp::create(b, dim));
    Value step = arith::ConstantIndexOp::create(b, dim + 2 == type.getRank() ? rows : 1);
    Value count = arith::CeilDivUIOp::create(b, size, step);
    position[dim] = arith::MulIOp::create(b, arith::RemUIOp::create(b, block, count), step);
    block = arith::DivUIOp::create(b, block, count);
  }
  return position;
}

/// The kernel that splits an argument, before all others.
void Way::makeKernel(unsigned number, SymbolTable &symbols) {
  func::FuncOp first = kernels.front();
  ImplicitLocOpBuilder b(first.getLoc(), first);
  std::string name = (kernels.back().getName() + "_parts").str();
  auto kernel = func::FuncOp::create(first.getLoc(), name, first.getFunctionType());
  symbols.insert(kernel, first->getIterator());
  for (StringRef name : {plan::PlanDialect::kWhenAttrName, plan::PlanDialect::kWayAttrName})
    if (Attribute attribute = first->getAttr(name))
      kernel->setAttr(name, attribute);
  Block *body = kernel.addEntryBlock();
  b.setInsertionPointToStart(body);
  Value source = body->getArgument(number);
  auto type = cast<MemRefType>(source.getType());
  int64_t rows = getRows(first);
  kernel->setAttr(TileDialect::kKernelAttrName, KernelAttr::get(b.getContext(), /*warpgroups=*/1,
                                                                getGrid(b, number, type, rows)));
  SmallVector<Attribute> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? Attribute(plan::ExtentAttr::get(b.getContext(), number, dim, 1, 1, 1, 0))
                        : b.getI64IntegerAttr(size));
  SmallVector<Value> position = emitPosition(b, source, rows);
  auto tile = RankedTensorType::get({rows, type.getShape().back()}, b.getF32Type());
  Parts parts = emitParts(b, LoadOp::create(b, tile, source, position), /*isAny=*/true);
  for (auto [i, part] : llvm::enumerate(parts)) {
    unsigned place = firstPart[number] + i;
    kernel.setArgAttr(place, TileDialect::kScratchAttrName, b.getArrayAttr(sizes));
    StoreOp::create(b, part, body->getArgument(place), position);
  }
  func::ReturnOp::create(b);
}

/// Scratch is numbered in the order of the kernels that fill it, and these are the first.
unsigned Way::findPlaceOfParts() {
  unsigned place = kernels.front().getNumArguments();
  for (func::FuncOp kernel : kernels)
    for (unsigned number : llvm::seq(kernel.getNumArguments()))
      if (kernel.getArgAttr(number, TileDialect::kScratchAttrName))
        place = std::min(place, number);
  return place;
}

/// Three more arguments of all kernels, whose tiles lie as those of the argument do.
LogicalResult Way::addParts(unsigned number) {
  func::FuncOp first = kernels.front();
  auto type = cast<MemRefType>(first.getArgument(number).getType());
  if (type.getRank() < 2 || type.isDynamicDim(type.getRank() - 1))
    return first.emitOpError("expected rows of static size to split, got ") << type;
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  auto part = MemRefType::get(type.getShape(), BFloat16Type::get(type.getContext()),
                              StridedLayoutAttr::get(type.getContext(), /*offset=*/0, strides));
  unsigned begin = placeOfParts;
  firstPart[number] = begin;
  placeOfParts += kParts;
  for (func::FuncOp kernel : kernels) {
    if (kernel.getArgAttr(number, plan::PlanDialect::kPagedAttrName))
      return kernel.emitOpError("expected pages of 16-bit elements on this target, got ") << type;
    for (unsigned place : llvm::seq(begin, placeOfParts)) {
      if (failed(kernel.insertArgument(place, part, DictionaryAttr(), kernel.getLoc())))
        return failure();
      for (StringRef name :
           {plan::PlanDialect::kPackedAttrName, plan::PlanDialect::kRaggedAttrName})
        if (Attribute attribute = kernel.getArgAttr(number, name))
          kernel.setArgAttr(place, name, attribute);
    }
  }
  return success();
}

const Parts &Way::getParts(Value tile) {
  auto [it, isNew] = partsOf.try_emplace(tile);
  if (!isNew)
    return it->second;
  ImplicitLocOpBuilder b(tile.getLoc(), tile.getContext());
  b.setInsertionPointAfterValue(tile);
  BlockArgument argument = findArgument(tile);
  if (!argument)
    return partsOf[tile] = emitParts(b, tile, /*isAny=*/false);
  RankedTensorType narrow = cast<RankedTensorType>(tile.getType()).clone(b.getBF16Type());
  Parts parts;
  if (auto load = tile.getDefiningOp<LoadOp>()) {
    unsigned first = firstPart[argument.getArgNumber()];
    for (unsigned i : llvm::seq(kParts))
      parts[i] =
          LoadOp::create(b, narrow, argument.getOwner()->getArgument(first + i), load.getOffsets());
    return partsOf[tile] = parts;
  }
  auto clear = tile.getDefiningOp<ClearUnreadOp>();
  // A row without weights has none in the first part.
  Value by = clear.getBy() ? getParts(clear.getBy())[0] : Value();
  Parts values = getParts(clear.getValues());
  for (unsigned i : llvm::seq(kParts))
    parts[i] =
        ClearUnreadOp::create(b, narrow, values[i], by, clear.getFrom(), clear.getCondition())
            .getResult();
  return partsOf[tile] = parts;
}

/// The forward and the backward pass exchange lhs and rhs, and have to add in the same order: that
/// of the arguments.
static bool isExchanged(MmaOp product) {
  BlockArgument lhs = findArgument(product.getLhs()), rhs = findArgument(product.getRhs());
  return lhs && rhs && lhs.getArgNumber() > rhs.getArgNumber();
}

void Way::splitProduct(MmaOp product) {
  Parts lhs = getParts(product.getLhs()), rhs = getParts(product.getRhs());
  bool isTurned = isExchanged(product);
  ImplicitLocOpBuilder b(product.getLoc(), product);
  Value before = product.getAcc();
  bool isApart =
      before && addsTiles(plan::getMachine(product), kParts, product.getType().getDimSize(1));
  Value sum = isApart ? Value() : before;
  for (auto [i, j] : kProducts)
    sum = MmaOp::create(b, product.getType(), lhs[isTurned ? j : i], rhs[isTurned ? i : j], sum,
                        product.getTransposeLhs(), product.getTransposeRhs());
  if (isApart)
    sum = arith::AddFOp::create(b, before, sum);
  product.getResult().replaceAllUsesWith(sum);
}

LogicalResult Way::split(SymbolTable &symbols) {
  findProducts();
  if (products.empty())
    return success();
  placeOfParts = findPlaceOfParts();
  for (auto [number, first] : firstPart)
    if (failed(addParts(number)))
      return failure();
  for (MmaOp product : products)
    splitProduct(product);
  for (MmaOp product : llvm::reverse(products))
    product.erase();
  for (auto [number, first] : firstPart)
    makeKernel(number, symbols);
  return success();
}

//===----------------------------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------------------------===//

namespace {
struct SplitProductsPass
    : RoomPass<attn::tile::impl::SplitProductsPassBase<SplitProductsPass>, Room::Tile, Room::Tile> {
  LogicalResult transform() override {
    SymbolTable symbols(getOperation());
    SmallVector<SmallVector<func::FuncOp>> ways;
    Attribute before;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(TileDialect::kKernelAttrName))
        continue;
      Attribute way = kernel->getAttr(plan::PlanDialect::kWayAttrName);
      if (ways.empty() || way != before)
        ways.emplace_back();
      ways.back().push_back(kernel);
      before = way;
    }
    for (ArrayRef<func::FuncOp> kernels : ways)
      if (failed(Way(kernels).split(symbols)))
        return failure();
    return success();
  }
};
} // namespace
