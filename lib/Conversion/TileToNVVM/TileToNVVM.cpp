//===- TileToNVVM.cpp - convert-tile-to-nvvm ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In three steps: functions become kernels (Kernel.cpp); tile ops become scalars, inline assembly
// and NVVM ops, while scf, arith and index stay (one file of patterns per theme); what stays goes
// to the LLVM dialect by upstream's patterns.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Passes.h"
#include "lib/Conversion/TileToNVVM/Registers.h"
#include "lib/Rooms/RoomPass.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTTILETONVVMPASS
#include "lib/Conversion/TileToNVVM/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Four times what a thread has registers: more would go to memory and back.
static constexpr int64_t kMaxTileRegisters = 1024;
/// Code is made by the element: about as much as a multiprocessor's cache of instructions holds,
/// many times over.
static constexpr int64_t kMaxElements = int64_t(1) << 17;

/// Reports tiles, places and programs of which no code should be made.
static LogicalResult checkSizes(func::FuncOp kernel) {
  int64_t total = 0, mostShared = getMostSharedBytes(kernel);
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes()) {
      RankedTensorType tile = getTileType(type);
      int64_t count = tile && hasLayout(tile) ? getLayout(tile).getNumRegisters() : 0;
      if (count > kMaxTileRegisters)
        return op->emitOpError("expected at most ")
               << kMaxTileRegisters << " elements of a tile in a thread, got " << count << " of "
               << tile;
      total += count;
      if (auto place = dyn_cast<SharedType>(type); place && place.getSizeInBytes() > mostShared)
        return op->emitOpError("expected at most ")
               << mostShared << " bytes of shared memory, got " << place.getSizeInBytes();
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (total > kMaxElements)
    return kernel.emitOpError("expected a thread to compute at most ")
           << kMaxElements << " elements of tiles one after the other, got " << total;
  return success();
}

/// Tile ops, and tiles in the operands and results of other ops, go.
static LogicalResult convertTiles(Operation *function, const KernelMap &kernels) {
  MLIRContext *context = function->getContext();
  TileTypeConverter types;
  PatternContext patternContext{types, kernels, findCrowdedProducts(function)};
  RewritePatternSet patterns(context);
  populateBarrierPatterns(patterns, patternContext);
  populateClearUnreadPatterns(patterns, patternContext);
  populateCopyPatterns(patterns, patternContext);
  populateCopySharePatterns(patterns, patternContext);
  populateDiagonalPatterns(patterns, patternContext);
  populateElementwisePatterns(patterns, patternContext);
  populateGatherAsyncPatterns(patterns, patternContext);
  populateGlobalPatterns(patterns, patternContext);
  populateProductPatterns(patterns, patternContext);
  populateRolePatterns(patterns, patternContext);
  populateRowPatterns(patterns, patternContext);
  populateSynchronousCopyPatterns(patterns, patternContext);
  populateTensorMemoryPatterns(patterns, patternContext);
  populateTransposePatterns(patterns, patternContext);
  populateWarpProductPatterns(patterns, patternContext);

  ConversionTarget target(*context);
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  target.addIllegalDialect<TileDialect, gpu::GPUDialect, memref::MemRefDialect>();
  // Roles are taken apart afterwards: until then an op finds its role around it.
  target.addLegalOp<SpecializeOp, YieldOp>();
  target.addDynamicallyLegalDialect<arith::ArithDialect, math::MathDialect>(
      [&](Operation *op) { return types.isLegal(op); });
  scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, target);
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyFullConversion(function, target, std::move(patterns));
}

/// Scalars, control flow and indices of 32 bits go to the LLVM dialect.
static LogicalResult convertScalars(Operation *function) {
  if (failed(expandMath(function)))
    return failure();
  MLIRContext *context = function->getContext();
  RewritePatternSet math(context);
  populateMathPatterns(math);
  arith::populateCeilFloorDivExpandOpsPatterns(math);
  walkAndApplyPatterns(function, std::move(math));

  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(32);
  LLVMTypeConverter types(context, options);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  return applyFullConversion(function, target, std::move(patterns));
}

/// The placeholders of memref arguments have no users left.
static void erasePlaceholders(Kernel &kernel) {
  for (auto &[memref, global] : kernel.arguments)
    if (memref.use_empty())
      memref.getDefiningOp()->erase();
  kernel.arguments.clear();
}

namespace {
struct ConvertTileToNVVMPass
    : attn::RoomPass<attn::impl::ConvertTileToNVVMPassBase<ConvertTileToNVVMPass>,
                     attn::within(attn::Room::Async), attn::Room::Thread> {
  LogicalResult transform() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(TileDialect::kKernelAttrName))
        functions.push_back(function);
    for (auto [index, function] : llvm::enumerate(functions)) {
      if (failed(checkSizes(function)))
        return failure();
      auto attribute = function->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
      emitLaunchOrder(function,
                      index + 1 < functions.size() ? functions[index + 1] : func::FuncOp());
      FailureOr<Kernel> kernel = convertKernelFunction(function);
      if (failed(kernel))
        return failure();
      KernelMap kernels;
      Operation *op = kernel->function;
      Kernel &entry = kernels[op] = std::move(*kernel);
      if (failed(convertTiles(op, kernels)))
        return failure();
      erasePlaceholders(entry);
      op->walk([&](SpecializeOp specialize) { lowerRoles(specialize, entry); });
      if (attribute.getSchedule().recompute)
        keepInTurns(op);
      if (attribute.getSchedule().hold)
        holdStages(op);
      if (failed(convertScalars(op)))
        return failure();
    }
    return success();
  }
};
} // namespace
