//===- Bufferize.cpp - attn-cpu-bufferize -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnArguments.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

namespace attn {
#define GEN_PASS_DEF_CPUBUFFERIZEPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static bufferization::BufferLikeType getArgumentType(bufferization::TensorLikeType type,
                                                     Attribute memorySpace, FunctionOpInterface,
                                                     const bufferization::BufferizationOptions &) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (tensor.getRank() > 1)
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(tensor.getContext(), ShapedType::kDynamic, strides);
  return cast<bufferization::BufferLikeType>(
      MemRefType::get(tensor.getShape(), tensor.getElementType(), layout, memorySpace));
}

/// Buffers of unknown rank have no strides to state.
static LogicalResult checkRanks(func::FuncOp func) {
  for (TypeRange types : {TypeRange(func.getArgumentTypes()), TypeRange(func.getResultTypes())})
    for (Type type : types)
      if (isa<UnrankedTensorType>(type))
        return func.emitOpError("expected tensors of known rank, got ") << type;
  return success();
}

/// Arguments marked as strided become buffers that say nothing about their strides, before the
/// others become buffers whose last dimension is contiguous.
static void bufferizeStridedArguments(func::FuncOp func) {
  OpBuilder b(func.getContext());
  for (BlockArgument argument : func.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!func.removeArgAttr(argument.getArgNumber(), kStridedAttrName) || !type)
      continue;
    SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
    auto layout = StridedLayoutAttr::get(func.getContext(), ShapedType::kDynamic, strides);
    argument.setType(MemRefType::get(type.getShape(), type.getElementType(), layout));
    b.setInsertionPointToStart(&func.getBody().front());
    auto tensor = bufferization::ToTensorOp::create(b, argument.getLoc(), type, argument,
                                                    /*restrict=*/true, /*writable=*/false);
    argument.replaceAllUsesExcept(tensor, tensor);
  }
  func.setFunctionType(
      b.getFunctionType(func.getBody().front().getArgumentTypes(), func.getResultTypes()));
}

/// Of a constant, which stands in the object file.
static constexpr int64_t kMostElements = int64_t(1) << 26;

/// Whether the tensor has at most as many elements.
static bool hasAtMost(int64_t most, TensorType type) {
  int64_t count = 1;
  return llvm::all_of(type.getShape(), [&](int64_t extent) {
    return !llvm::MulOverflow(count, std::max<int64_t>(extent, 1), count) && count <= most;
  });
}

/// Upstream folds an op on tensors of unknown extents, x ^ x, to a constant of them, which no
/// memory holds. Others stand in the object file.
static LogicalResult checkConstants(ModuleOp module) {
  WalkResult walk = module.walk([](arith::ConstantOp constant) -> WalkResult {
    auto type = dyn_cast<TensorType>(constant.getType());
    if (!type)
      return WalkResult::advance();
    if (!type.hasStaticShape())
      return constant.emitOpError("expected a constant of static extents, got ") << type;
    if (!hasAtMost(kMostElements, type))
      return constant.emitOpError("expected a constant of at most ")
             << kMostElements << " elements, got " << type;
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Values that control flow merges have buffers of several layouts, and may have to be copied to a
/// buffer whose strides nothing states.
static LogicalResult checkLayouts(ModuleOp module) {
  WalkResult walk = module.walk([](memref::AllocOp alloc) -> WalkResult {
    if (alloc.getType().getLayout().getAffineMap().getNumSymbols() ==
        alloc.getSymbolOperands().size())
      return WalkResult::advance();
    return alloc.emitError(
               "expected a tensor whose buffer has one layout on all ways to here, got ")
           << alloc.getType();
  });
  return failure(walk.wasInterrupted());
}

namespace {
struct CPUBufferizePass
    : RoomPass<attn::impl::CPUBufferizePassBase<CPUBufferizePass>, Room::Online, Room::Buffers> {
  LogicalResult transform() override {
    ModuleOp module = getOperation();
    Attribute never = BoolAttr::get(&getContext(), false);
    for (auto func : module.getOps<func::FuncOp>()) {
      if (failed(checkRanks(func)))
        return failure();
      if (func.isExternal())
        continue;
      bufferizeStridedArguments(func);
      for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
        if (isa<TensorType>(type))
          func.setArgAttr(i, bufferization::BufferizationDialect::kWritableAttrName, never);
    }

    if (failed(checkConstants(module)))
      return failure();
    IRRewriter rewriter(&getContext());
    if (failed(bufferization::eliminateEmptyTensors(rewriter, module)))
      return failure();
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.functionArgTypeConverterFn = getArgumentType;
    bufferization::BufferizationState state;
    if (failed(bufferization::runOneShotModuleBufferize(module, options, state)))
      return failure();
    bufferization::removeBufferizationAttributesInModule(module);
    return checkLayouts(module);
  }
};
} // namespace
