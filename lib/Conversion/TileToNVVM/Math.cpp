//===- Math.cpp - scalar math as the approximate instructions of the hardware
//------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's own lowering of exp2 adds scaling for denormal results, its logarithm has none, and its
// division is a call of dozens of instructions. Attention's exponentials are at most 1 and its
// scores small: the approximate instructions are what every fast kernel uses (2 ulp), with
// denormals flushed to zero.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Math/IR/Math.h"
#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cmath>

using namespace mlir;
using namespace attn::tile;

static Value f32(OpBuilder &builder, Location loc, float value) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value));
}

static Value emitIntrinsic(OpBuilder &builder, Location loc, StringRef name, Value operand) {
  return LLVM::CallIntrinsicOp::create(builder, loc, operand.getType(), builder.getStringAttr(name),
                                       ValueRange{operand})
      .getResults();
}

static Value emitExp2(OpBuilder &builder, Location loc, Value x) {
  return emitIntrinsic(builder, loc, "llvm.nvvm.ex2.approx.ftz.f32", x);
}

static Value emitLog2(OpBuilder &builder, Location loc, Value x) {
  return emitIntrinsic(builder, loc, "llvm.nvvm.lg2.approx.ftz.f", x);
}

static Value emitReciprocal(OpBuilder &builder, Location loc, Value x) {
  return NVVM::RcpApproxFtzF32Op::create(builder, loc, x.getType(), x);
}

namespace {
/// Replaces an f32 op of one operand by what `emit` makes of it.
template <typename OpT> struct UnaryPattern : OpRewritePattern<OpT> {
  UnaryPattern(MLIRContext *context, Value (*emit)(OpBuilder &, Location, Value))
      : OpRewritePattern<OpT>(context), emit(emit) {}

  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    rewriter.replaceOp(op, emit(rewriter, op.getLoc(), op.getOperand()));
    return success();
  }

  Value (*emit)(OpBuilder &, Location, Value);
};

struct DivisionPattern : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    Value reciprocal = emitReciprocal(rewriter, op.getLoc(), op.getRhs());
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), reciprocal);
    return success();
  }
};
/// Two f32 to two of 16 bits. As an intrinsic: a generic truncation that is carried around a loop
/// would be moved behind the loop's variables, which would then take twice the registers.
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
} // namespace

void attn::tile::populateMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<UnaryPattern<math::Exp2Op>>(context, &emitExp2);
  patterns.add<UnaryPattern<math::Log2Op>>(context, &emitLog2);
  patterns.add<UnaryPattern<math::ExpOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        return emitExp2(builder, loc,
                        arith::MulFOp::create(builder, loc, x, f32(builder, loc, 1 / M_LN2)));
      });
  patterns.add<UnaryPattern<math::LogOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        return arith::MulFOp::create(builder, loc, emitLog2(builder, loc, x),
                                     f32(builder, loc, M_LN2));
      });
  patterns.add<UnaryPattern<math::Log1pOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        // Scores count by their differences: near 0 the absolute error matters, which is small.
        Value sum = arith::AddFOp::create(builder, loc, x, f32(builder, loc, 1));
        return arith::MulFOp::create(builder, loc, emitLog2(builder, loc, sum),
                                     f32(builder, loc, M_LN2));
      });
  patterns.add<UnaryPattern<math::SqrtOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        return emitIntrinsic(builder, loc, "llvm.nvvm.sqrt.approx.ftz.f", x);
      });
  patterns.add<UnaryPattern<math::RsqrtOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        return emitIntrinsic(builder, loc, "llvm.nvvm.rsqrt.approx.ftz.f", x);
      });
  patterns.add<UnaryPattern<math::SinOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        return emitIntrinsic(builder, loc, "llvm.nvvm.sin.approx.ftz.f", x);
      });
  patterns.add<UnaryPattern<math::CosOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        return emitIntrinsic(builder, loc, "llvm.nvvm.cos.approx.ftz.f", x);
      });
  patterns.add<UnaryPattern<math::TanhOp>>(
      context, [](OpBuilder &builder, Location loc, Value x) -> Value {
        return LLVM::InlineAsmOp::create(
                   builder, loc, x.getType(), ValueRange{x}, "tanh.approx.f32 $0, $1;", "=f,f",
                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                   LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
            .getResult(0);
      });
  patterns.add<DivisionPattern, TruncationPattern>(context);
}
