//===- Products.cpp - matrix products become wgmma ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Written as inline assembly of our own: the NVVM dialect's op takes A from shared memory only, and
// the intrinsics for fences and waits have no operands, so that LLVM may read an accumulator before
// the wait. Here every accumulator and A register is tied through the fence, the products and the
// wait: the order of the asynchronous proxy is in the data flow. It costs no instruction; ptxas
// keeps the accumulators where they are.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "lib/Conversion/TileToNVVM/SharedOperand.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// A sum over K
//===----------------------------------------------------------------------===//

static StringRef getTypeName(Type element) {
  if (element.isBF16())
    return "bf16";
  if (element.isF16())
    return "f16";
  if (isa<Float8E4M3FNType>(element))
    return "e4m3";
  return isa<Float8E5M2Type>(element) ? "e5m2" : "";
}

namespace {
/// The instructions that sum over all of K: 64 rows per warpgroup, `columns` of them, 32 bytes of K
/// each. They are one piece of assembly: LLVM's time goes with the operands, and they share the
/// accumulators.
struct Sum {
  struct Step {
    /// In registers: four. In shared memory: one descriptor.
    SmallVector<Value> lhs;
    Value rhs;
  };
  int64_t columns;
  /// Of both operands, of one width.
  Type lhsElement, element;
  bool transposeLhs, transposeRhs;
  /// Whether normal instructions wrote registers that these read.
  bool isFenced;
  /// The accumulators that are added to; empty for a product.
  SmallVector<Value> accumulators;
  SmallVector<Step> steps;

  SmallVector<Value> emit(OpBuilder &builder, Location loc) const;
};
} // namespace

SmallVector<Value> Sum::emit(OpBuilder &builder, Location loc) const {
  int64_t count = columns / 2;
  unsigned next = 0;
  auto placeholders = [&](int64_t number) {
    std::string text;
    for (int64_t index = 0; index < number; ++index)
      text += (index ? ", $" : "$") + std::to_string(next++);
    return text;
  };
  std::string results = placeholders(count), constraints;
  for (int64_t index = 0; index < count; ++index)
    constraints += "=f,";
  SmallVector<Value> operands(accumulators);
  for (size_t index = 0; index < accumulators.size(); ++index)
    constraints += std::to_string(index) + ",";
  next += accumulators.size();

  std::string text = isFenced ? "wgmma.fence.sync.aligned;\n\t" : "";
  bool isProduct = accumulators.empty();
  if (isProduct)
    text.insert(0, "{ .reg .pred p; setp.ne.b32 p, 0, 0;\n\t");
  StringRef lhsName = getTypeName(lhsElement), name = getTypeName(element);
  for (const Step &step : steps) {
    bool inRegisters = step.lhs.size() == 4;
    // The factors of A and B, then the transpositions that this form has: none for 8 bits, only B's
    // for A in registers.
    std::string tail = "1, 1";
    if (element.getIntOrFloatBitWidth() == 16) {
      if (!inRegisters)
        tail += transposeLhs ? ", 1" : ", 0";
      tail += transposeRhs ? ", 1" : ", 0";
    }
    std::string left = placeholders(step.lhs.size());
    if (inRegisters)
      left = llvm::formatv("{{{0}}", left);
    StringRef scaleD = isProduct && &step == &steps.front() ? "p" : "1";
    text += llvm::formatv(
        "wgmma.mma_async.sync.aligned.m64n{0}k{1}.f32.{8}.{2} {{{3}}, {4}, {5}, {6}, {7};\n\t",
        columns, 256 / element.getIntOrFloatBitWidth(), name, results, left, placeholders(1),
        scaleD, tail, lhsName);
    constraints += inRegisters ? "r,r,r,r,l," : "l,l,";
    llvm::append_range(operands, step.lhs);
    operands.push_back(step.rhs);
  }
  text += isProduct ? "}" : "";
  constraints.pop_back();
  SmallVector<Type> types(count, builder.getF32Type());
  return emitAsm(builder, loc, StringRef(text).rtrim(), constraints, operands, types);
}

//===----------------------------------------------------------------------===//
// A whole product
//===----------------------------------------------------------------------===//

/// Of 32 bytes of K.
static int64_t countSteps(MmaAsyncOp op) {
  auto shared = cast<SharedType>(op.getRhs().getType());
  int64_t k = op.getTransposeRhs() ? shared.getNumColumns() : shared.getNumRows();
  return k * shared.getElementType().getIntOrFloatBitWidth() / 256;
}

/// Of which registers have the lhs: all, none, or those of kept columns.
static int64_t countKeptSteps(MmaAsyncOp op) {
  if (isa<RankedTensorType>(op.getLhs().getType()))
    return countSteps(op);
  return op.getKept() ? cast<RankedTensorType>(op.getKept().getType()).getDimSize(1) / 16 : 0;
}

/// Descriptors of tiles that stay which a loop may keep: two uniform registers each, of 63.
static constexpr int64_t kMostKeptSteps = 16;

DenseSet<Operation *> attn::tile::findCrowdedProducts(Operation *function) {
  DenseSet<Operation *> crowded;
  function->walk([&](LoopLikeOpInterface loop) {
    SmallVector<Operation *> products;
    int64_t keptSteps = 0;
    auto stays = [&](Value operand) {
      return isa<SharedType>(operand.getType()) && loop.isDefinedOutsideOfLoop(operand);
    };
    for (Region *body : loop.getLoopRegions())
      for (auto product : body->getOps<MmaAsyncOp>()) {
        int64_t kept = llvm::count_if(ValueRange({product.getLhs(), product.getRhs()}), stays);
        keptSteps += kept * countSteps(product);
        if (stays(product.getLhs()))
          keptSteps -= countKeptSteps(product);
        if (kept > 0)
          products.push_back(product);
      }
    if (keptSteps > kMostKeptSteps)
      crowded.insert_range(products);
  });
  return crowded;
}

namespace {
/// A product cut into instructions: steps of 64 rows per warpgroup, parts of at most 256 columns
/// (128 of 8 bits), steps of 32 bytes of K.
class Product {
public:
  Product(OpBuilder &builder, MmaAsyncOp op, const PatternContext &context)
      : builder(builder), loc(op.getLoc()), op(op), context(context) {
    result = cast<InFlightType>(op.getType()).getTile();
    layout = cast<AccAttr>(result.getEncoding());
    auto shared = cast<SharedType>(op.getRhs().getType());
    rhs = {shared, op.getTransposeRhs(), SharedOperand::Form::Warpgroup};
    element = shared.getElementType();
    auto left = dyn_cast<SharedType>(op.getLhs().getType());
    lhsElement = left ? left.getElementType()
                      : cast<RankedTensorType>(op.getLhs().getType()).getElementType();
    kSteps = countSteps(op);
    rowSteps = result.getDimSize(0) / (kRows * layout.getUnits());
    // Kernels of 8 bits have four warpgroups, hence 128 registers for each thread before roles
    // share them anew: ptxas refuses an instruction that takes more (C7602).
    bool isNarrow = element.getIntOrFloatBitWidth() == 8;
    parts = llvm::divideCeil(result.getDimSize(1), isNarrow ? 128 : 256);
  }

  LogicalResult verify() {
    const attn::Product &unit = layout.getUnit();
    if (unit.form != attn::Product::Form::Shared || unit.threads != kThreads || unit.rows != kRows)
      return op.emitOpError("expected products of ")
             << kRows << " rows by " << kThreads << " threads, got " << layout.getProduct()
             << " of " << unit.rows << " rows by " << unit.threads;
    int64_t columns = result.getDimSize(1);
    if (columns % (8 * parts) != 0)
      return op.emitOpError("expected columns that divide into ")
             << parts << " equal parts of whole groups of 8, got " << columns;
    if (getTypeName(element).empty())
      return op.emitOpError("expected elements of type bf16, f16, f8E4M3FN or f8E5M2, got ")
             << element;
    // A part of an MN-major operand starts at a slab.
    if (!rhs.isKMajor && parts > 1 && columns / parts % rhs.type.getSlabColumns() != 0)
      return op.emitOpError("expected parts of whole slabs of ")
             << rhs.type.getSlabColumns() << " columns, got " << columns / parts;
    return success();
  }

  SmallVector<Value> emit(ValueRange left, Value right, ValueRange accumulators, ValueRange kept) {
    bool inRegisters = isa<RankedTensorType>(op.getLhs().getType());
    SmallVector<Value> a =
        inRegisters ? toWords(left) : SmallVector<Value>{emitLhsDescriptor(left.front())};
    int64_t keptSteps = countKeptSteps(op);
    SmallVector<Value> words = inRegisters ? a : toWords(kept);
    SmallVector<Value> c(accumulators);
    // Products chained on one accumulator with A in shared memory read nothing that others wrote.
    bool isChained = op.getAcc() && isa<InFlightType>(op.getAcc().getType());
    bool isFenced = !isChained || keptSteps > 0;
    Value b = rhs.emitDescriptor(builder, loc, right);
    // LLVM moves descriptors of what stays out of loops, unless they look new in each turn.
    if (context.crowdedProducts.contains(op)) {
      a.front() = emitTiedAsm(builder, loc, "", a.front()).front();
      b = emitTiedAsm(builder, loc, "", b).front();
    }
    int64_t columns = result.getDimSize(1) / parts, count = columns / 2;
    SmallVector<Value> results;
    for (int64_t row = 0; row < rowSteps; ++row)
      for (int64_t part = 0; part < parts; ++part) {
        Sum sum{columns,  lhsElement, element, op.getTransposeLhs(), !op.getTransposeRhs(),
                isFenced, {},         {}};
        if (!c.empty())
          sum.accumulators.assign(c.begin() + results.size(), c.begin() + results.size() + count);
        for (int64_t k = 0; k < kSteps; ++k) {
          Sum::Step &step = sum.steps.emplace_back();
          if (k < keptSteps)
            step.lhs.assign(words.begin() + (row * keptSteps + k) * 4,
                            words.begin() + (row * keptSteps + k) * 4 + 4);
          else
            step.lhs = {
                advanceDescriptor(builder, loc, a.front(), getLhs().getOffset(row * kRows, k))};
          step.rhs = advanceDescriptor(builder, loc, b, rhs.getOffset(part * columns, k));
        }
        llvm::append_range(results, sum.emit(builder, loc));
      }
    return results;
  }

private:
  SharedOperand getLhs() {
    return {cast<SharedType>(op.getLhs().getType()), !op.getTransposeLhs(),
            SharedOperand::Form::Warpgroup};
  }

  /// A's descriptor at this warpgroup's first row.
  Value emitLhsDescriptor(Value pointer) {
    SharedOperand lhs = getLhs();
    int64_t bytes = lhs.getOffset(kRows * rowSteps, 0);
    if (layout.getUnits() > 1) {
      Value offset = LLVM::MulOp::create(builder, loc, context.getRoleWarpgroup(builder, op),
                                         i32(builder, loc, bytes));
      pointer = addBytes(builder, loc, pointer, offset);
    }
    return lhs.emitDescriptor(builder, loc, pointer);
  }

  SmallVector<Value> toWords(ValueRange values) {
    SmallVector<Value> words;
    for (Value value : values)
      words.push_back(LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), value));
    return words;
  }

  /// Of a wgmma.
  static constexpr int64_t kThreads = 128, kRows = 64;

  OpBuilder &builder;
  Location loc;
  MmaAsyncOp op;
  const PatternContext &context;
  RankedTensorType result;
  AccAttr layout;
  SharedOperand rhs{};
  Type lhsElement, element;
  int64_t kSteps, rowSteps, parts;
};

struct MmaAsyncPattern : TilePattern<MmaAsyncOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(MmaAsyncOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Product product(rewriter, op, context);
    if (failed(product.verify()))
      return failure();
    rewriter.replaceOpWithMultiple(op, {product.emit(adaptor.getLhs(), adaptor.getRhs().front(),
                                                     adaptor.getAcc(), adaptor.getKept())});
    return success();
  }
};

struct MmaCommitPattern : TilePattern<MmaCommitOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(MmaCommitOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    emitAsm(rewriter, op.getLoc(), "wgmma.commit_group.sync.aligned;", "", {}, {});
    rewriter.eraseOp(op);
    return success();
  }
};

struct MmaWaitPattern : TilePattern<MmaWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(MmaWaitOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> values;
    for (ValueRange range : adaptor.getValues())
      llvm::append_range(values, range);
    std::string text = llvm::formatv("wgmma.wait_group.sync.aligned {0};", op.getPending());
    values = emitTiedAsm(rewriter, op.getLoc(), text, values);
    SmallVector<SmallVector<Value>> results;
    ArrayRef<Value> rest = values;
    for (ValueRange range : adaptor.getValues()) {
      results.emplace_back(rest.take_front(range.size()));
      rest = rest.drop_front(range.size());
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

/// A synchronous product is one that is waited for at once.
struct MmaPattern : TilePattern<MmaOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(MmaOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!context.getKernel(op).machine->product.isAsync)
      return rewriter.notifyMatchFailure(op, "warps multiply by themselves");
    auto type = cast<RankedTensorType>(op.getType());
    if (!hasLayout(type) || !isa<SharedType>(op.getRhs().getType()))
      return op.emitOpError("expected a layout and rhs in shared memory, got ")
             << op.getRhs().getType();
    Location loc = op.getLoc();
    Value flying = MmaAsyncOp::create(rewriter, loc, InFlightType::get(op.getContext(), type),
                                      op.getLhs(), op.getRhs(), op.getAcc(), op.getKept(),
                                      op.getTransposeLhs(), op.getTransposeRhs());
    MmaCommitOp::create(rewriter, loc);
    rewriter.replaceOpWithNewOp<MmaWaitOp>(op, TypeRange(type), 0, flying);
    return success();
  }
};
} // namespace

void attn::tile::populateProductPatterns(RewritePatternSet &patterns,
                                         const PatternContext &context) {
  patterns.add<MmaAsyncPattern, MmaCommitPattern, MmaWaitPattern, MmaPattern>(
      context, patterns.getContext());
}
