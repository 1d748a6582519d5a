//===- ScalarMath.cpp - scalar math as instructions of the hardware -------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's own lowering of exp2 adds scaling for denormal results, its logarithm has none, and its
// division is a call of dozens of instructions. Attention's exponentials are at most 1 and its
// scores small: every fast kernel uses the approximate instructions (2 ulp), with denormals flushed
// to zero. ExpandMath.cpp writes out the functions for which there is no instruction of this
// precision.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <cmath>

using namespace mlir;
using namespace attn::tile;

/// Makes the result of an f32 op of one operand.
using Emit = Value (*)(ImplicitLocOpBuilder &, Value);

static Value f32(ImplicitLocOpBuilder &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

template <const char *const &name> static Value emitIntrinsic(ImplicitLocOpBuilder &b, Value x) {
  return LLVM::CallIntrinsicOp::create(b, x.getType(), b.getStringAttr(name), ValueRange{x})
      .getResults();
}

static constexpr const char *kExp2 = "llvm.nvvm.ex2.approx.ftz.f32";
static constexpr const char *kLog2 = "llvm.nvvm.lg2.approx.ftz.f";
static constexpr const char *kSqrt = "llvm.nvvm.sqrt.approx.ftz.f";
static constexpr const char *kRsqrt = "llvm.nvvm.rsqrt.approx.ftz.f";

static Value emitReciprocal(ImplicitLocOpBuilder &b, Value x) {
  return NVVM::RcpApproxFtzF32Op::create(b, x.getType(), x);
}

static Value emitExp(ImplicitLocOpBuilder &b, Value x) {
  return emitIntrinsic<kExp2>(b, arith::MulFOp::create(b, x, f32(b, 1 / M_LN2)));
}

static Value emitLog10(ImplicitLocOpBuilder &b, Value x) {
  return arith::MulFOp::create(b, emitIntrinsic<kLog2>(b, x), f32(b, M_LN2 / M_LN10));
}

static Value emitLog(ImplicitLocOpBuilder &b, Value x) {
  return arith::MulFOp::create(b, emitIntrinsic<kLog2>(b, x), f32(b, M_LN2));
}

/// 1 - 2 / (exp(2x) + 1): its absolute error is that of 1. The instruction's relative error of
/// 2^-11 would be 0.02 in a score capped at 50.
static Value emitTanh(ImplicitLocOpBuilder &b, Value x) {
  Value power = emitIntrinsic<kExp2>(b, arith::MulFOp::create(b, x, f32(b, 2 / M_LN2)));
  Value inverse = emitReciprocal(b, arith::AddFOp::create(b, power, f32(b, 1)));
  return math::FmaOp::create(b, inverse, f32(b, -2), f32(b, 1));
}

static Value emitApproximateTanh(ImplicitLocOpBuilder &b, Value x) {
  return LLVM::InlineAsmOp::create(b, x.getType(), ValueRange{x}, "tanh.approx.f32 $0, $1;", "=f,f",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
                                   ArrayAttr())
      .getResult(0);
}

namespace {
/// Replaces an f32 op of one operand by what `emit` makes of it.
template <typename OpT> struct UnaryPattern : OpRewritePattern<OpT> {
  UnaryPattern(MLIRContext *context, Emit emit) : OpRewritePattern<OpT>(context), emit(emit) {}

  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, emit(b, op.getOperand()));
    return success();
  }

  Emit emit;
};

/// fastmath<afn> asks for the instruction, which is the fastest and has an error of 2^-11.
struct TanhPattern : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    bool isApproximate = bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
    Value x = op.getOperand();
    rewriter.replaceOp(op, isApproximate ? emitApproximateTanh(b, x) : emitTanh(b, x));
    return success();
  }
};

struct DivisionPattern : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), emitReciprocal(b, op.getRhs()));
    return success();
  }
};

/// A score kept within the largest f32 that its factor takes, times that factor. Rounded towards
/// zero, the product alone does that: what is too large becomes the largest f32, infinities stay.
/// One instruction instead of five, in the inner loop. Found by its ops and not by a name: what
/// they mean, folds, the interpreter and the simulator know without one.
struct BoundedProductPattern : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    std::optional<float> factor = getConstantF32(op.getRhs());
    auto kept = op.getLhs().getDefiningOp<arith::SelectOp>();
    if (!op.getType().isF32() || !factor || !kept)
      return failure();
    auto isDropped = kept.getCondition().getDefiningOp<arith::CmpFOp>();
    auto lower = kept.getFalseValue().getDefiningOp<arith::MaximumFOp>();
    auto upper = lower ? lower.getLhs().getDefiningOp<arith::MinimumFOp>() : nullptr;
    if (!isDropped || isDropped.getPredicate() != arith::CmpFPredicate::OEQ || !upper ||
        isDropped.getLhs() != upper.getLhs())
      return failure();
    std::optional<float> bound = getConstantF32(upper.getRhs()),
                         least = getConstantF32(lower.getRhs());
    std::optional<float> dropped = getConstantF32(isDropped.getRhs()),
                         result = getConstantF32(kept.getTrueValue());
    if (!bound || !least || !dropped || !result || *least != -*bound || *dropped != *result ||
        *dropped != -INFINITY || !isLargest(*bound, *factor))
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr("llvm.nvvm.mul.rz.ftz.f"),
        ValueRange{upper.getLhs(), op.getRhs()});
    return success();
  }

  /// Whether `bound` is the largest f32 whose product with `factor` is finite.
  static bool isLargest(float bound, float factor) {
    return std::isfinite(bound * factor) && std::isinf(std::nextafter(bound, INFINITY) * factor);
  }
};

/// Two f32 to two of 16 bits. An intrinsic, because LLVM moves a generic truncation from the end of
/// a loop's step into the next one, and the loop then carries f32: twice the registers.
struct TruncationPattern : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || type.getNumElements() != 2 || !getElementTypeOrSelf(op.getIn()).isF32() ||
        type.getElementTypeBitWidth() != 16)
      return failure();
    Location loc = op.getLoc();
    Value low = LLVM::ExtractElementOp::create(rewriter, loc, op.getIn(), i32(rewriter, loc, 0));
    Value high = LLVM::ExtractElementOp::create(rewriter, loc, op.getIn(), i32(rewriter, loc, 1));
    StringRef name =
        type.getElementType().isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn";
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(op, type, rewriter.getStringAttr(name),
                                                       ValueRange{high, low});
    return success();
  }
};
/// bf16 to f32, the upper half of a word. LLVM's instruction for it goes through the unit of
/// exponentials, at an eighth of the rate of integer ones.
struct ExtensionPattern : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!getElementTypeOrSelf(op.getIn()).isBF16() || !getElementTypeOrSelf(op.getType()).isF32() ||
        (vector && vector.getNumElements() != 2))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type word = b.getI32Type();
    auto toFloat = [&](Value bits) -> Value {
      return LLVM::BitcastOp::create(b, b.getF32Type(), bits);
    };
    auto moveUp = [&](Value bits) {
      return toFloat(LLVM::ShlOp::create(b, bits, i32(b, op.getLoc(), 16)));
    };
    if (!vector) {
      Value bits = LLVM::BitcastOp::create(b, b.getI16Type(), op.getIn());
      rewriter.replaceOp(op, moveUp(LLVM::ZExtOp::create(b, word, bits)));
      return success();
    }
    Value bits = LLVM::BitcastOp::create(b, word, op.getIn());
    Value upper = LLVM::AndOp::create(b, bits, i32(b, op.getLoc(), int32_t(0xffff0000)));
    Value both = LLVM::PoisonOp::create(b, vector);
    Value elements[] = {moveUp(bits), toFloat(upper)};
    for (auto [index, element] : llvm::enumerate(elements))
      both = LLVM::InsertElementOp::create(b, both, element, i32(b, op.getLoc(), index));
    rewriter.replaceOp(op, both);
    return success();
  }
};

/// -|x| as it is: then the instruction that reads it does that too. LLVM's would flush what is
/// denormal, and so be two.
struct NegativeMagnitudePattern : OpRewritePattern<arith::NegFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::NegFOp op, PatternRewriter &rewriter) const override {
    auto magnitude = op.getOperand().getDefiningOp<math::AbsFOp>();
    if (!magnitude || !op.getType().isF32())
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::InlineAsmOp>(
        op, op.getType(), magnitude.getOperand(), "abs.f32 $0, $1; neg.f32 $0, $0;", "=f,f",
        /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
        /*asm_dialect=*/LLVM::AsmDialectAttr(), /*operand_attrs=*/ArrayAttr());
    return success();
  }
};

/// A sum of indices as its small constants, together, and the rest.
class PositionSum {
public:
  explicit PositionSum(Value index) : index(index), constant(addConstants(index, kDepth)) {}

  int64_t getConstant() const { return constant; }
  unsigned getNumConstants() const { return numConstants; }
  /// The sum without its constants, or null if nothing is left.
  Value emitRest(ImplicitLocOpBuilder &b) const { return emitRest(b, index, kDepth); }

private:
  /// Sums of what regions write have more terms than they have ops.
  static constexpr unsigned kDepth = 4;
  static constexpr int64_t kSmall = 4096;

  static std::optional<int64_t> getSmall(Value value) {
    std::optional<int64_t> number = getConstantIntValue(value);
    return number && -kSmall <= *number && *number <= kSmall ? number : std::nullopt;
  }
  static Operation *getSum(Value value, unsigned depth) {
    Operation *op = value.getDefiningOp();
    return depth > 0 && isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) ? op : nullptr;
  }
  int64_t addConstants(Value value, unsigned depth) {
    if (std::optional<int64_t> number = getSmall(value)) {
      ++numConstants;
      return *number;
    }
    Operation *sum = getSum(value, depth);
    if (!sum)
      return 0;
    int64_t right = addConstants(sum->getOperand(1), depth - 1);
    return addConstants(sum->getOperand(0), depth - 1) + (isa<arith::AddIOp>(sum) ? right : -right);
  }
  static Value emitRest(ImplicitLocOpBuilder &b, Value value, unsigned depth) {
    if (getSmall(value))
      return {};
    Operation *sum = getSum(value, depth);
    if (!sum)
      return value;
    Value left = emitRest(b, sum->getOperand(0), depth - 1);
    Value right = emitRest(b, sum->getOperand(1), depth - 1);
    if (!right)
      return left;
    if (isa<arith::AddIOp>(sum))
      return left ? arith::AddIOp::create(b, left, right).getResult() : right;
    left = left ? left : arith::ConstantOp::create(b, b.getZeroAttr(value.getType())).getResult();
    return arith::SubIOp::create(b, left, right);
  }

  Value index;
  unsigned numConstants = 0;
  int64_t constant;
};

/// (x + a) - (y + b) to (x - y) + (a - b): of the distances of a thread's rows and keys a half are
/// the same, and so is what is read by them.
struct DistancePattern : OpRewritePattern<arith::SubIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SubIOp op, PatternRewriter &rewriter) const override {
    PositionSum sum(op);
    if (!op.getType().isIndex() || sum.getNumConstants() < 2 || !isReadBy(op, kDepth))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value rest = sum.emitRest(b);
    if (!rest)
      return failure();
    Value constant = arith::ConstantIndexOp::create(b, sum.getConstant());
    rewriter.replaceOpWithNewOp<arith::AddIOp>(op, rest, constant);
    return success();
  }

private:
  static constexpr unsigned kDepth = 4;

  /// Whether an address is made of the index, between bounds or not.
  static bool isReadBy(Value index, unsigned depth) {
    return llvm::any_of(index.getUsers(), [&](Operation *user) {
      if (isa<LLVM::SExtOp>(user))
        return true;
      bool isIndex = isa<arith::MinSIOp, arith::MaxSIOp, arith::IndexCastOp>(user);
      return isIndex && depth > 0 && isReadBy(user->getResult(0), depth - 1);
    });
  }
};

/// float(x + c) to float(x) + c: a distance of a row and a key is converted once for all registers
/// of a thread, which differ by constants. Exact below 2^24, and as close as float(x + c) beyond,
/// since c is small.
struct PositionPattern : OpRewritePattern<arith::SIToFPOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SIToFPOp op, PatternRewriter &rewriter) const override {
    auto cast = op.getIn().getDefiningOp<arith::IndexCastOp>();
    if (!cast || !op.getType().isF32())
      return failure();
    PositionSum sum(cast.getIn());
    if (sum.getConstant() == 0)
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value rest = sum.emitRest(b);
    if (!rest)
      return failure();
    Value position = arith::IndexCastOp::create(b, cast.getType(), rest);
    position = arith::SIToFPOp::create(b, op.getType(), position);
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, position, f32(b, double(sum.getConstant())));
    return success();
  }
};
} // namespace

void attn::tile::populateMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<UnaryPattern<math::Exp2Op>>(context, &emitIntrinsic<kExp2>);
  patterns.add<UnaryPattern<math::Log2Op>>(context, &emitIntrinsic<kLog2>);
  patterns.add<UnaryPattern<math::SqrtOp>>(context, &emitIntrinsic<kSqrt>);
  patterns.add<UnaryPattern<math::RsqrtOp>>(context, &emitIntrinsic<kRsqrt>);
  patterns.add<UnaryPattern<math::ExpOp>>(context, &emitExp);
  patterns.add<UnaryPattern<math::LogOp>>(context, &emitLog);
  patterns.add<UnaryPattern<math::Log10Op>>(context, &emitLog10);
  patterns.add<TanhPattern, BoundedProductPattern, DivisionPattern, TruncationPattern,
               ExtensionPattern, NegativeMagnitudePattern, PositionPattern>(context);
  patterns.add<DistancePattern>(context, /*benefit=*/2);
}
