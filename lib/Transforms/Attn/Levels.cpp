//===- Levels.cpp - the doors between the rooms --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Levels.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace attn;

StringRef attn::stringifyLevel(Level level) {
  switch (level) {
  case Level::Problem:
    return "problem";
  case Level::Grid:
    return "grid";
  case Level::Online:
    return "online";
  }
  return "";
}

std::optional<Level> attn::symbolizeLevel(StringRef name) {
  return llvm::StringSwitch<std::optional<Level>>(name)
      .Case("problem", Level::Problem)
      .Case("grid", Level::Grid)
      .Case("online", Level::Online)
      .Default(std::nullopt);
}

static InFlightDiagnostic reject(Operation *op, Level level) {
  return op->emitOpError("does not belong to level '") << stringifyLevel(level) << "'";
}

static LogicalResult verifyProblem(Operation *op) {
  if (isa<OnlineAttentionOp, NormalizeOp>(op))
    return reject(op, Level::Problem) << ": the softmax is not online yet";
  if (isa<scf::SCFDialect>(op->getDialect()))
    return reject(op, Level::Problem) << ": attention is on whole tensors";
  return success();
}

static LogicalResult verifyGrid(Operation *op) {
  if (isa<OnlineAttentionOp, NormalizeOp>(op))
    return reject(op, Level::Grid) << ": the softmax is not online yet";
  auto attention = dyn_cast<AttentionOp>(op);
  if (!attention)
    return success();
  if (attention.getVariantsAttr())
    return reject(op, Level::Grid) << ": variants are regions by now";
  RankedTensorType query = attention.getQuery().getType();
  if (query.getDimSize(0) != 1 || query.getDimSize(1) != 1)
    return reject(op, Level::Grid) << ": expected one batch and one head, got " << query;
  auto forall = op->getParentOfType<scf::ForallOp>();
  if (!forall || forall.getRank() != 3 || !forall.getMapping())
    return reject(op, Level::Grid)
           << ": expected it inside an scf.forall over (B, H, M tiles) mapped to blocks";
  return success();
}

static LogicalResult verifyOnline(Operation *op) {
  if (isa<AttentionOp>(op))
    return reject(op, Level::Online) << ": expected attn.online_attention";
  return success();
}

LogicalResult attn::verifyLevel(Operation *root, Level level) {
  WalkResult result = root->walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (!isa<ModuleOp>(op) &&
        !isa_and_nonnull<func::FuncDialect, tensor::TensorDialect, arith::ArithDialect,
                         math::MathDialect, linalg::LinalgDialect, affine::AffineDialect,
                         scf::SCFDialect, AttnDialect>(op->getDialect()))
      return reject(op, level) << ": expected func, tensor, arith, math, linalg and attn ops";
    if (isa<AttnDialect>(op->getDialect()) &&
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>))
      return reject(op, level) << ": expected tensors, got buffers";
    switch (level) {
    case Level::Problem:
      return verifyProblem(op);
    case Level::Grid:
      return verifyGrid(op);
    case Level::Online:
      return verifyOnline(op);
    }
    return success();
  });
  return failure(result.wasInterrupted());
}
