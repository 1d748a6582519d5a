//===- AttnToTile.cpp - convert-attn-to-tile ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnArguments.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/BlockConverter.h"
#include "lib/Conversion/AttnToTile/ClearRows.h"
#include "lib/Conversion/AttnToTile/MoveRows.h"
#include "lib/Conversion/AttnToTile/Passes.h"
#include "lib/Conversion/AttnToTile/QuerySum.h"
#include "lib/Conversion/AttnToTile/SizeFactor.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Schedule/GradBlock.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <tuple>

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILEPASS
#include "lib/Conversion/AttnToTile/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// A tensor as a kernel sees it: any strides, but the last dimension of a matrix is contiguous
/// unless its argument is marked.
static Type getArgumentType(Value value, func::FuncOp function) {
  Type type = value.getType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return type;
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  auto argument = dyn_cast<BlockArgument>(value);
  bool isStrided = argument && function.getArgAttr(argument.getArgNumber(), kStridedAttrName);
  if (tensor.getRank() > 1 && !isStrided)
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(type.getContext(), /*offset=*/0, strides);
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
}

/// Over (B, H, M tiles), of which a merge may have fewer, over these and parts, or tiles, of the
/// keys before them, or over tiles of what a sum keeps.
static bool isGrid(scf::ForallOp op) {
  if (!op.getMapping() || !llvm::is_contained({1, 2, 3, 4}, op.getRank()) ||
      !llvm::all_of(op.getMixedLowerBound(), isZeroInteger))
    return false;
  auto isTileSize = [](OpFoldResult step) { return getConstantIntValue(step).value_or(0) > 0; };
  SmallVector<OpFoldResult> steps = op.getMixedStep();
  return isTileSize(steps.front()) && isTileSize(steps.pop_back_val()) &&
         llvm::all_of(ArrayRef(steps).drop_front(steps.size() == 3), isOneInteger);
}

/// The value that a grid makes: before it was placed, and before rows became heads again.
static Value lookThroughViews(Value result) {
  if (auto place = result.getDefiningOp<PlaceOp>())
    result = place.getSource();
  if (auto unpack = result.getDefiningOp<UnpackHeadsOp>())
    result = unpack.getSource();
  return result;
}

/// The grids of a function, which between them make its results.
static FailureOr<SmallVector<scf::ForallOp>> findGrids(func::FuncOp function) {
  auto grids = llvm::to_vector(function.getBody().front().getOps<scf::ForallOp>());
  auto returns = cast<func::ReturnOp>(function.getBody().front().getTerminator()).getOperands();
  auto isFilled = [](Value result) { return result.getDefiningOp<linalg::FillOp>() != nullptr; };
  auto isMade = [&](Value result) {
    return isFilled(result) || MovedRows::find(result.getDefiningOp());
  };
  if (grids.empty() && !llvm::any_of(returns, isMade))
    return function.emitOpError("expected an scf.forall mapped to blocks, got none");
  for (scf::ForallOp grid : grids)
    if (!isGrid(grid))
      return grid.emitOpError(
          "expected a grid over (B, H, M tiles), or over these and parts or tiles of the keys "
          "before them, from 0 in steps of 1 and of the rows and keys of a tile, mapped to blocks");
  llvm::SmallDenseSet<Value> returned;
  // A result to which nothing is added keeps its first value.
  for (Value result : returns)
    if (!(isMade(result) || lookThroughViews(result).getDefiningOp<scf::ForallOp>()) ||
        !returned.insert(result).second)
      return function.emitOpError("expected every result to come from a grid, each from its own");
  return grids;
}

/// Whether rows of no sequence have zeros in a result of the function.
static bool isCleared(PlaceOp place) {
  auto fill = place.getDest().getDefiningOp<linalg::FillOp>();
  return fill && fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>() &&
         cast<RankedTensorType>(place.getType()).getRank() == 3 &&
         matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

/// Upstream leaves a size of a dimension that is not there undefined; extents and memrefs have
/// none.
static LogicalResult checkDims(func::FuncOp function) {
  WalkResult dims = function.walk([](tensor::DimOp dim) -> WalkResult {
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!type)
      return dim.emitOpError("expected a ranked tensor, got ") << dim.getSource().getType();
    if (index && (*index < 0 || *index >= type.getRank()))
      return dim.emitOpError("expected a dimension below ")
             << type.getRank() << ", got " << *index << " of " << type;
    return success();
  });
  return failure(dims.wasInterrupted());
}

/// Whether the gradients of keys and of values are asked for: the factor of the dot products is one
/// of the former.
static std::pair<bool, bool> getSums(Operation *step) {
  bool sumsKeys = false, sumsValues = false;
  step->getParentOfType<scf::ForallOp>().walk(
      [&](GradEndOp end) { (end.getScale() ? sumsKeys : sumsValues) = true; });
  return {sumsKeys, sumsValues};
}

/// The schedule's block is one that the machine has. attn-set-schedule has seen to it, unless the
/// schedule was written by hand or made for a CPU.
static LogicalResult checkBlock(AbsorbingOpInterface step, ScheduleAttr schedule) {
  RankedTensorType keyType, valueType;
  llvm::TypeSwitch<Operation *>(step)
      .Case<OnlineAttentionOp, GradDeltaStepOp, GradQueryStepOp, GradKeyValueStepOp,
            GradCapturedStepOp>([&](auto op) {
        keyType = cast<RankedTensorType>(op.getKey().getType());
        valueType = cast<RankedTensorType>(op.getValue().getType());
      });
  if (!keyType)
    return step->emitOpError("has no form on tiles");
  int64_t d = keyType.getDimSize(1), dv = valueType.getDimSize(1);
  if (ShapedType::isDynamic(d) || ShapedType::isDynamic(dv))
    return step->emitOpError("expected static D and Dv, got ") << keyType << " and " << valueType;
  const Machine &machine = plan::getMachine(step);
  auto [bytes, parts] = getFactors(keyType.getElementTypeBitWidth());
  if (isa<OnlineAttentionOp>(step)) {
    GPUBlock block{d, dv, bytes, schedule.getWords(), parts};
    std::string why = refuseBlock(machine, block);
    return why.empty() ? success() : step->emitOpError(why);
  }
  GradBlock block{d, dv, bytes, step.getRunningPosition() == 2, 0, 0, 0};
  block.parts = parts;
  if (block.rowsRun)
    std::tie(block.sumsKeys, block.sumsValues) = getSums(step);
  std::string why = refuseGradBlock(machine, withSchedule(machine, block, schedule.getWords()));
  return why.empty() ? success() : step->emitOpError(why);
}

/// x: tiles of rows and, within each, parts; y: heads; z: batches. With heads first (startsHeads)
/// they are z, x and y. Or turns of `loops`.
static FailureOr<ArrayAttr> getLaunchGrid(scf::ForallOp grid,
                                          const llvm::SmallDenseMap<Operation *, unsigned> &loops) {
  Builder builder(grid.getContext());
  SmallVector<SmallVector<Attribute>, 3> factors(3);
  int64_t rank = grid.getRank();
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    FailureOr<Attribute> factor = getSizeFactor(grid, grid.getMixedUpperBound()[dim],
                                                *getConstantIntValue(grid.getMixedStep()[dim]));
    if (failed(factor))
      return failure();
    bool isPart = rank == 4 && dim == 0;
    factors[isPart ? 0 : rank - 1 - dim].push_back(*factor);
  }
  for (auto [op, dim] : loops) {
    auto loop = cast<scf::ForOp>(op);
    std::optional<int64_t> step = getConstantIntValue(loop.getStep());
    if (!step || !isConstantIntValue(loop.getLowerBound(), 0))
      return loop.emitOpError("expected a loop from 0 in constant steps");
    FailureOr<Attribute> factor =
        getSizeFactor(grid, getAsOpFoldResult(loop.getUpperBound()), *step);
    if (failed(factor))
      return failure();
    factors[rank - 1 - dim] = {*factor};
  }
  if (startsHeads(grid))
    std::rotate(factors.begin(), factors.begin() + 1, factors.end());
  SmallVector<Attribute> dimensions;
  for (ArrayRef<Attribute> product : factors)
    dimensions.push_back(builder.getArrayAttr(product));
  return builder.getArrayAttr(dimensions);
}

/// Numbers of f32, rounded up to rows of 16 bytes.
static Attribute padRows(Attribute size) {
  constexpr int64_t step = 4;
  MLIRContext *context = size.getContext();
  if (auto extent = dyn_cast<plan::ExtentAttr>(size))
    return plan::ExtentAttr::get(context, extent.getArgument(), extent.getDim(), /*divisor=*/step,
                                 /*multiplier=*/1, /*unit=*/step, /*less=*/0);
  int64_t rows = cast<IntegerAttr>(size).getInt();
  return Builder(context).getI64IntegerAttr(llvm::alignTo(rows, step));
}

namespace {
/// The arguments of all kernels of a function: its arguments, its results, and scratch, which grids
/// leave for later grids.
struct Signature {
  func::FuncOp function;
  KernelArguments arguments;
  SmallVector<Type> types;
  /// Sizes of scratch, by argument.
  llvm::SmallMapVector<unsigned, ArrayAttr, 2> scratch;
  /// The sums that grids of the fused form add to or read, by grid, each with the number of its
  /// argument.
  llvm::DenseMap<scf::ForallOp, std::pair<FusedGrids, unsigned>> sums;
  /// Sums that a grid before them starts with zeros: their arguments and rows of their tiles.
  llvm::DenseMap<scf::ForallOp, SmallVector<std::pair<unsigned, int64_t>, 1>> zeros;
  /// Scratch whose first size is a number of parts that the device decides.
  llvm::SmallMapVector<Value, unsigned, 2> parts;
  /// How heads are rows, by argument.
  llvm::SmallMapVector<unsigned, plan::PackedAttr, 2> packed;
  /// How pages are keys, by argument.
  llvm::SmallMapVector<unsigned, plan::PagedAttr, 2> paged;
  /// How rows are sequences, by argument.
  llvm::SmallMapVector<unsigned, plan::RaggedAttr, 2> ragged;

  /// Scratch with a number for each row of queries, padded, and whether that is negated.
  SmallVector<std::pair<unsigned, bool>, 2> rowNumbers;

  void add(Value value) {
    arguments[value] = types.size();
    types.push_back(getArgumentType(value, function));
  }

  /// The view of an argument is the argument, which only tells its sizes otherwise.
  LogicalResult addPacked(PackHeadsOp pack) {
    auto source = dyn_cast<BlockArgument>(pack.getSource());
    bool isView = !source && arguments.contains(pack.getSource());
    std::optional<ArgumentSize> key = findArgumentSize(pack.getKey(), 1);
    if (isView)
      source = function.getArgument(arguments.lookup(pack.getSource()));
    if (!source || !key || !llvm::all_of(source.getUsers(), [&](Operation *user) {
          return user == pack || isa<PackSinkOp, UnpackHeadsOp, tensor::DimOp>(user) ||
                 (isView && isa<RaggedOp>(user));
        }))
      return pack.emitOpError("expected an argument that is read in no other way, and one as its "
                              "key");
    arguments[pack] = source.getArgNumber();
    packed[source.getArgNumber()] =
        plan::PackedAttr::get(function.getContext(), pack.getSlots(), key->argument.getArgNumber());
    return success();
  }

  /// The view of a pool is the pool, whose positions are those of the view.
  LogicalResult addPaged(PagedOp view) {
    auto pool = dyn_cast<BlockArgument>(view.getPool()),
         table = dyn_cast<BlockArgument>(view.getTable());
    if (!pool || !table || !llvm::all_of(pool.getUsers(), [&](Operation *user) {
          return user == view || isa<tensor::DimOp>(user);
        }))
      return view.emitOpError("expected an argument that is read in no other way as its pool, and "
                              "one as its table");
    arguments[view] = pool.getArgNumber();
    paged[pool.getArgNumber()] =
        plan::PagedAttr::get(function.getContext(), table.getArgNumber(), view.getPageSize());
    return success();
  }

  /// How the rows of a view (B, H, M, ...) are those of sequences.
  FailureOr<plan::RaggedAttr> getRagged(Operation *op, Value offsets,
                                        std::optional<ArgumentSize> most) {
    auto argument = dyn_cast<BlockArgument>(offsets);
    if (!argument || !most || most->multiplier != 1 || most->less != 0)
      return op->emitOpError("expected offsets that are an argument, and the size of one as M");
    return plan::RaggedAttr::get(function.getContext(), argument.getArgNumber(),
                                 most->argument.getArgNumber(), most->dim);
  }

  /// The view of sequences is the argument that has their rows.
  LogicalResult addRagged(RaggedOp view) {
    auto rows = dyn_cast<BlockArgument>(view.getRows());
    if (!rows || !llvm::all_of(rows.getUsers(), [&](Operation *user) {
          return user == view || isa<tensor::DimOp>(user);
        }))
      return view.emitOpError("expected an argument that is read in no other way as its rows");
    FailureOr<plan::RaggedAttr> attribute =
        getRagged(view, view.getOffsets(), findArgumentSize(view.getUpTo()));
    if (failed(attribute))
      return failure();
    arguments[view] = rows.getArgNumber();
    ragged[rows.getArgNumber()] = *attribute;
    return success();
  }

  /// A result that is placed is stored where rows of sequences are.
  LogicalResult addPlaced(PlaceOp place) {
    Value source = place.getSource();
    bool isPlace = place.getDest().getDefiningOp<tensor::EmptyOp>() || isCleared(place);
    if (!isPlace || !source.hasOneUse())
      return place.emitOpError("expected a result that nothing else reads, into a tensor.empty or, "
                               "of a matrix, one that is filled with zeros");
    std::optional<ArgumentSize> most;
    if (auto unpack = source.getDefiningOp<UnpackHeadsOp>())
      most = findArgumentSize(unpack.getQuery(), 2);
    else if (auto grid = source.getDefiningOp<scf::ForallOp>()) {
      auto empty = grid.getOutputs()[cast<OpResult>(source).getResultNumber()]
                       .getDefiningOp<tensor::EmptyOp>();
      auto size = empty ? dyn_cast<Value>(empty.getMixedSizes()[2]) : Value();
      most = size ? findArgumentSize(size) : std::nullopt;
    }
    FailureOr<plan::RaggedAttr> attribute = getRagged(place, place.getOffsets(), most);
    if (failed(attribute))
      return failure();
    ragged[types.size()] = *attribute;
    if (auto unpack = source.getDefiningOp<UnpackHeadsOp>()) {
      if (failed(addPackedResult(unpack)))
        return failure();
    } else {
      arguments[source] = types.size();
    }
    add(place);
    return success();
  }

  /// So is that of a sink, of which each row reads its own (BlockConverter::convertSinks).
  LogicalResult addSink(PackSinkOp pack) {
    auto source = dyn_cast<BlockArgument>(pack.getSource());
    if (!source || !findArgumentSize(pack.getKey(), 1))
      return pack.emitOpError("expected arguments as its source and key");
    arguments[pack] = source.getArgNumber();
    return success();
  }

  /// The next argument has the heads of packed rows.
  LogicalResult addPackedResult(UnpackHeadsOp unpack) {
    auto query = arguments.find(unpack.getQuery());
    plan::PackedAttr attribute = query == arguments.end() ? nullptr : packed.lookup(query->second);
    if (!attribute || attribute.getSlots() != int64_t(unpack.getSlots()) ||
        !unpack.getSource().hasOneUse())
      return unpack.emitOpError("expected the rows of a packed argument, unpacked once");
    arguments[unpack.getSource()] = types.size();
    packed[types.size()] = attribute;
    return success();
  }

  LogicalResult addScratch(OpResult value) {
    auto grid = cast<scf::ForallOp>(value.getOwner());
    auto empty = grid.getOutputs()[value.getResultNumber()].getDefiningOp<tensor::EmptyOp>();
    if (!empty)
      return grid.emitOpError("expected results that start as tensor.empty");
    SmallVector<Attribute> sizes;
    for (OpFoldResult size : empty.getMixedSizes()) {
      FailureOr<Attribute> factor = getSizeFactor(grid, size);
      if (failed(factor))
        return failure();
      if (isa<plan::PartsAttr>(*factor) && sizes.empty())
        parts[cast<Value>(size)] = types.size();
      sizes.push_back(*factor);
    }
    bool isOfRows = hasRowNumbers(grid);
    if (isOfRows) {
      rowNumbers.emplace_back(types.size(), areNegated(value));
      sizes.back() = padRows(sizes.back());
    }
    scratch[types.size()] = ArrayAttr::get(grid.getContext(), sizes);
    add(value);
    // Padded memory has other sizes than the tensor.
    if (isOfRows) {
      auto type = cast<MemRefType>(types.back());
      SmallVector<int64_t> shape(type.getShape());
      shape.back() = ShapedType::kDynamic;
      types.back() = MemRefType::get(shape, type.getElementType(), type.getLayout());
    }
    return success();
  }

  LogicalResult addSum(FusedGrids fused) {
    SmallVector<Attribute> sizes;
    for (unsigned dim : {0, 1, 2}) {
      FailureOr<Attribute> size = fused.getSize(dim);
      if (failed(size))
        return failure();
      sizes.push_back(*size);
    }
    Builder builder(function.getContext());
    MemRefType memory = fused.getType();
    for (int64_t size : memory.getShape().take_back(2))
      sizes.push_back(builder.getI64IntegerAttr(size));
    unsigned number = types.size();
    scratch[number] = builder.getArrayAttr(sizes);
    types.push_back(memory);
    for (scf::ForallOp grid : {fused.keys, fused.rows})
      sums[grid] = {fused, number};
    zeros[fused.numbers].emplace_back(number, fused.running);
    return success();
  }
};
} // namespace

static FailureOr<Signature> getSignature(func::FuncOp function, ArrayRef<scf::ForallOp> grids,
                                         ArrayRef<FusedGrids> fused) {
  Signature signature;
  signature.function = function;
  for (Value argument : function.getArguments())
    signature.add(argument);
  for (auto view : function.getBody().front().getOps<PagedOp>())
    if (failed(signature.addPaged(view)))
      return failure();
  for (auto view : function.getBody().front().getOps<RaggedOp>())
    if (failed(signature.addRagged(view)))
      return failure();
  for (auto pack : function.getBody().front().getOps<PackHeadsOp>())
    if (failed(signature.addPacked(pack)))
      return failure();
  for (auto pack : function.getBody().front().getOps<PackSinkOp>())
    if (failed(signature.addSink(pack)))
      return failure();
  for (Value result :
       cast<func::ReturnOp>(function.getBody().front().getTerminator()).getOperands()) {
    if (auto place = result.getDefiningOp<PlaceOp>()) {
      if (failed(signature.addPlaced(place)))
        return failure();
      continue;
    }
    if (auto unpack = result.getDefiningOp<UnpackHeadsOp>())
      if (failed(signature.addPackedResult(unpack)))
        return failure();
    signature.add(result);
  }
  for (scf::ForallOp grid : grids) {
    for (OpResult result : grid->getResults())
      if (!signature.arguments.contains(result) && failed(signature.addScratch(result)))
        return failure();
    for (const FusedGrids &pair : fused)
      if (pair.numbers == grid && failed(signature.addSum(pair)))
        return failure();
  }
  return signature;
}

/// The name that profilers show.
static std::string getKernelName(func::FuncOp function, scf::ForallOp grid) {
  StringRef suffix = grid.getRank() == 4 ? "_split" : "";
  grid.walk([&](Operation *op) {
    suffix = llvm::TypeSwitch<Operation *, StringRef>(op)
                 .Case([](TileStatusOp) { return "_status"; })
                 .Case([](ListTilesOp) { return "_lists"; })
                 // Parts are dealt in loops over sequences. A search finds one number; those of
                 // several tiles are computed.
                 .Case([&](tensor::FromElementsOp numbers) -> StringRef {
                   if (!grid.getOps<scf::ForOp>().empty())
                     return "_deal";
                   return numbers.getElements().size() > 1 ? "_status" : "_searches";
                 })
                 .Case([](MergeOp) { return "_merge"; })
                 .Case([](GradRowsOp) { return "_rows"; })
                 .Case([](linalg::GenericOp) { return "_sum"; })
                 .Case<GradDeltaStepOp, GradDeltaEndOp>([](auto) { return "_delta"; })
                 .Case([](GradQueryStepOp) { return "_query"; })
                 .Case([](GradCapturedStepOp) { return "_captured"; })
                 .Case([](GradKeyValueStepOp step) {
                   auto [sumsKeys, sumsValues] = getSums(step);
                   return !sumsValues ? "_key" : !sumsKeys ? "_value" : "_key_value";
                 })
                 // Parts that a loop has added.
                 .Case([&](GradEndOp end) {
                   bool isSum = suffix.empty() && end.getAcc().getDefiningOp<scf::ForOp>();
                   return isSum ? "_sum" : suffix;
                 })
                 .Default(suffix);
  });
  return (function.getName() + suffix).str();
}

/// Of consumers; roles may add more. Two that share sums out have all rows of the block each.
static int64_t countWarpgroups(scf::ForallOp grid, ScheduleAttr schedule, int64_t rows,
                               bool isDivided) {
  if (schedule)
    return schedule->consumers / (isDivided ? 2 : 1);
  // One votes about a tile of the mask, makes a list, or searches.
  if (llvm::any_of(*grid.getBody(),
                   llvm::IsaPred<TileStatusOp, ListTilesOp, tensor::FromElementsOp>))
    return 1;
  return std::max<int64_t>(1, rows / plan::getMachine(grid).getWarpgroupRows());
}

/// Without a body, before the function.
static func::FuncOp createKernel(func::FuncOp function, Location loc, StringRef name,
                                 const Signature &signature, tile::KernelAttr attribute,
                                 SymbolTable &symbols) {
  Builder b(function.getContext());
  auto kernel = func::FuncOp::create(loc, name, b.getFunctionType(signature.types, {}));
  symbols.insert(kernel, function->getIterator());
  kernel.addEntryBlock();
  kernel->setAttr(tile::TileDialect::kKernelAttrName, attribute);
  for (StringRef name : {plan::PlanDialect::kWhenAttrName, plan::PlanDialect::kWayAttrName})
    if (Attribute attribute = function->getAttr(name))
      kernel->setAttr(name, attribute);
  return kernel;
}

/// Makes the kernel that starts a result, which grids add to, with what `start` says: zeros.
static LogicalResult convertStart(func::FuncOp function, Value result, Value start,
                                  const Signature &signature, SymbolTable &symbols) {
  auto fill = start.getDefiningOp<linalg::FillOp>();
  auto empty = fill ? fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>() : tensor::EmptyOp();
  auto number = signature.arguments.find(result);
  if (!empty || !matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) ||
      number == signature.arguments.end())
    return function.emitOpError("expected the gradient of a captured tensor to start with zeros");
  auto type = cast<MemRefType>(signature.types[number->second]);
  if (!type.getElementType().isF32())
    return function.emitOpError("expected the gradient of a captured tensor to be f32, got ")
           << type.getElementType();
  FailureOr<ArrayAttr> grid = getGridOfZeros(function, type, empty.getMixedSizes());
  if (failed(grid))
    return failure();
  auto attribute =
      tile::KernelAttr::getChecked([&] { return function.emitOpError(); }, function.getContext(),
                                   /*warpgroups=*/int64_t(1), *grid);
  if (!attribute)
    return failure();
  func::FuncOp kernel = createKernel(function, fill.getLoc(), (function.getName() + "_zeros").str(),
                                     signature, attribute, symbols);
  TileBuilder b(fill.getLoc(), OpBuilder::atBlockBegin(&kernel.getBody().front()));
  emitZeros(b, kernel.getArgument(number->second));
  func::ReturnOp::create(b);
  return success();
}

/// Makes the kernel that clears what is placed where no sequence is.
static LogicalResult convertCleared(func::FuncOp function, PlaceOp place,
                                    const Signature &signature, SymbolTable &symbols) {
  unsigned number = signature.arguments.lookup(lookThroughViews(place.getResult()));
  plan::RaggedAttr ragged = signature.ragged.lookup(number);
  auto attribute =
      tile::KernelAttr::getChecked([&] { return place.emitOpError(); }, function.getContext(),
                                   /*warpgroups=*/int64_t(1), getGridOfClearing(ragged));
  if (!attribute)
    return failure();
  func::FuncOp kernel =
      createKernel(function, place.getLoc(), (function.getName() + "_clear").str(), signature,
                   attribute, symbols);
  TileBuilder b(place.getLoc(), OpBuilder::atBlockBegin(&kernel.getBody().front()));
  emitClearing(b, kernel.getArguments(), kernel.getArgument(number), ragged);
  func::ReturnOp::create(b);
  return success();
}

/// Makes the kernel of `grid`, before the function.
static LogicalResult convertGrid(func::FuncOp function, scf::ForallOp grid,
                                 const Signature &signature, SymbolTable &symbols) {
  ScheduleAttr schedule;
  bool rowsRun = false;
  WalkResult sizes = grid.walk([&](AbsorbingOpInterface op) {
    schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    rowsRun = op.getRunningPosition() == 2;
    return WalkResult(!schedule ? success() : checkBlock(op, schedule));
  });
  if (sizes.wasInterrupted())
    return failure();
  // Without a step to schedule (a merge, or a mask that keeps nothing) the grid's rows are all
  // there is.
  std::optional<CapturedSum> captured = findCapturedSum(grid);
  if (captured && failed(checkCapturedSum(grid, *captured)))
    return failure();
  int64_t rows =
      captured && schedule ? schedule->blockM : *getConstantIntValue(grid.getMixedStep().back());
  FailureOr<ArrayAttr> launchGrid =
      getLaunchGrid(grid, captured ? captured->loops : decltype(captured->loops)());
  if (failed(launchGrid))
    return failure();

  bool isDivided =
      schedule && rowsRun && dividesSums(plan::getMachine(grid), schedule.getWords(), rows);
  int64_t warpgroups = countWarpgroups(grid, schedule, rows, isDivided);
  auto attribute = tile::KernelAttr::getChecked([&] { return grid.emitOpError(); },
                                                function.getContext(), warpgroups, *launchGrid,
                                                schedule ? schedule.getWords() : Schedule());
  if (!attribute)
    return failure();
  Builder b(function.getContext());
  func::FuncOp kernel = createKernel(function, grid.getLoc(), getKernelName(function, grid),
                                     signature, attribute, symbols);
  BlockConverter block(function, grid, kernel);
  block.rows = rows;
  // Scratch is declared by the kernel that fills it.
  auto declare = [&](unsigned number) {
    if (ArrayAttr sizes = signature.scratch.lookup(number))
      kernel.setArgAttr(number, tile::TileDialect::kScratchAttrName, sizes);
  };
  for (Value result : grid.getResults())
    declare(signature.arguments.lookup(result));
  for (auto [number, running] : signature.zeros.lookup(grid)) {
    declare(number);
    block.zeroed.emplace_back(kernel.getArgument(number), running);
  }
  for (auto [number, packed] : signature.packed)
    kernel.setArgAttr(number, plan::PlanDialect::kPackedAttrName, packed);
  for (auto [number, paged] : signature.paged)
    kernel.setArgAttr(number, plan::PlanDialect::kPagedAttrName, paged);
  for (auto [number, ragged] : signature.ragged)
    kernel.setArgAttr(number, plan::PlanDialect::kRaggedAttrName, ragged);
  block.dividesSums = isDivided;
  if (isDivided)
    kernel->setAttr(tile::TileDialect::kDividedAttrName, b.getUnitAttr());
  block.captured = captured;
  for (auto [number, isNegated] : signature.rowNumbers)
    block.rowNumbers.push_back({kernel.getArgument(number), isNegated});
  if (auto sum = signature.sums.find(grid); sum != signature.sums.end()) {
    auto [fused, number] = sum->second;
    bool isAdded = fused.keys == grid;
    kernel.setArgAttr(number, tile::TileDialect::kFragmentsAttrName, b.getUnitAttr());
    block.querySum = {kernel.getArgument(number), fused.running, fused.isTransposed, isAdded};
  }
  // Masks that look back leave the last rows, and the first keys, the most work.
  block.lastFirst = !rowsRun;
  return block.convert(signature.arguments, signature.parts);
}

static LogicalResult convertFunction(func::FuncOp function, SymbolTable &symbols) {
  FailureOr<SmallVector<scf::ForallOp>> grids = findGrids(function);
  if (failed(grids) || failed(checkDims(function)))
    return failure();
  SmallVector<FusedGrids> fused = findFusedGrids(*grids);
  for (const FusedGrids &pair : fused) {
    // Sums are read when they are complete.
    llvm::erase(*grids, pair.rows);
    grids->insert(std::next(llvm::find(*grids, pair.keys)), pair.rows);
    // Grids that search for ends of loops in `rows` go, since `rows` has no loops any more.
    llvm::erase_if(*grids, [&](scf::ForallOp grid) {
      return !grid->use_empty() && llvm::all_of(grid->getUsers(), [&](Operation *user) {
        return pair.rows->isProperAncestor(user) && isa<tensor::ExtractOp>(user);
      });
    });
  }
  FailureOr<Signature> signature = getSignature(function, *grids, fused);
  if (failed(signature))
    return failure();
  // A kernel may have the function's name.
  symbols.remove(function);
  for (Value result :
       cast<func::ReturnOp>(function.getBody().front().getTerminator()).getOperands())
    if (result.getDefiningOp<linalg::FillOp>() &&
        failed(convertStart(function, result, result, *signature, symbols)))
      return failure();
  for (auto place : function.getBody().front().getOps<PlaceOp>())
    if (isCleared(place) && failed(convertCleared(function, place, *signature, symbols)))
      return failure();
  for (Operation &op : function.getBody().front()) {
    auto create = [&](StringRef suffix, tile::KernelAttr attribute) {
      return createKernel(function, op.getLoc(), (function.getName() + suffix).str(), *signature,
                          attribute, symbols);
    };
    if (MovedRows::find(&op) && failed(convertMovedRows(&op, signature->arguments, create)))
      return failure();
  }
  for (scf::ForallOp grid : *grids) {
    if (findCapturedSum(grid) && failed(convertStart(function, grid.getResult(0),
                                                     grid.getOutputs()[0], *signature, symbols)))
      return failure();
    if (failed(convertGrid(function, grid, *signature, symbols)))
      return failure();
  }
  function.erase();
  return success();
}

namespace {
struct ConvertAttnToTilePass
    : RoomPass<attn::impl::ConvertAttnToTilePassBase<ConvertAttnToTilePass>, Room::Online,
               Room::Tile> {
  LogicalResult transform() override {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && failed(convertFunction(function, symbols)))
        return failure();
    return success();
  }
};
} // namespace
