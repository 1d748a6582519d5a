//===- Registers.h - register tiles as the values one thread holds ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of R elements per thread becomes R values, in the order of its layout's registers.
// Elements of 8 or 16 bits become R/4 or R/2 vectors of 32 bits, as the hardware wants them:
// consecutive registers of a layout are neighbours of a row.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_REGISTERS_H
#define ATTN_LIB_CONVERSION_TILETONVVM_REGISTERS_H

#include "lib/Conversion/TileToNVVM/Kernel.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::tile {

/// Register tiles to scalars, shared tiles and barriers to pointers, slots to (stage, phase), rows
/// to their distances from the start of memory. Places of tensor memory become the address of their
/// first column, and columns a pointer to the number of the first.
class TileTypeConverter : public mlir::TypeConverter {
public:
  TileTypeConverter();
};

/// How many elements of this type share a 32-bit register: 4, 2 or 1.
int64_t getPack(mlir::Type elementType);

/// The values of a tile element by element, and back. Elements keep their type.
llvm::SmallVector<mlir::Value> unpack(mlir::OpBuilder &builder, mlir::Location loc,
                                      mlir::ValueRange values);
llvm::SmallVector<mlir::Value> pack(mlir::OpBuilder &builder, mlir::Location loc,
                                    mlir::Type elementType, mlir::ValueRange elements);

/// The part of a position that only the thread decides, i32; the rest is Layout::getPosition({0, 0,
/// register}).
struct ThreadPosition {
  mlir::Value row, column;
};

/// Products of a loop with wide tiles that stay. Such a loop keeps one descriptor for each k step
/// of them; where they outnumber uniform registers ptxas keeps them in registers of every thread.
llvm::DenseSet<mlir::Operation *> findCrowdedProducts(mlir::Operation *function);

/// State that all patterns share.
struct PatternContext {
  const TileTypeConverter &types;
  const KernelMap &kernels;
  llvm::DenseSet<mlir::Operation *> crowdedProducts;

  const Kernel &getKernel(mlir::Operation *op) const;
  /// i32: the thread's number within the role around `op`.
  mlir::Value getRoleThread(mlir::OpBuilder &builder, mlir::Operation *op) const;
  /// i32: the thread's number within its warp.
  mlir::Value getLane(mlir::OpBuilder &builder, mlir::Operation *op) const;
  /// i32: the warpgroup's number within the role around `op`, the same for a whole warp.
  mlir::Value getRoleWarpgroup(mlir::OpBuilder &builder, mlir::Operation *op) const;
  ThreadPosition getThreadPosition(mlir::OpBuilder &builder, mlir::Operation *op,
                                   const Layout &layout) const;
  /// i1: this lane stores an element that several lanes hold. Null if every element has one owner.
  mlir::Value getIsFirstReplica(mlir::OpBuilder &builder, mlir::Operation *op,
                                const Layout &layout) const;
  /// Runs `body` in one thread of the role around `op`: directly if the role is elected, under a
  /// condition if not.
  void emitOnce(mlir::OpBuilder &builder, mlir::Operation *op,
                llvm::function_ref<void(mlir::OpBuilder &)> body) const;
  /// Enters a branch that the first thread of each unit of a product takes.
  void enterFirstOfUnit(mlir::OpBuilder &builder, mlir::Operation *op) const;
};

/// A pattern on a tile op that knows its kernel.
template <typename OpT> struct TilePattern : mlir::OpConversionPattern<OpT> {
  using OneToNOpAdaptor = mlir::OpConversionPattern<OpT>::OneToNOpAdaptor;

  TilePattern(const PatternContext &context, mlir::MLIRContext *mlirContext)
      : mlir::OpConversionPattern<OpT>(context.types, mlirContext), context(context) {}

  const PatternContext &context;
};

/// Integer constants of the LLVM dialect.
mlir::Value i32(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);
mlir::Value i64(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);
/// Calls `emit` with `first`, `first` + `step` and so on below `count`: what is a thread's, or a
/// warp's, of so many.
void emitShares(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first, int64_t step,
                int64_t count, llvm::function_ref<void(mlir::Value)> emit);
/// An index as i32.
mlir::Value toI32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value index);
/// `pointer + bytes`.
mlir::Value addBytes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pointer,
                     mlir::Value bytes);
mlir::Value addBytes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pointer,
                     int64_t bytes);

/// The address of an element of global memory: pointer + sum of index * stride, in 64 bits.
mlir::Value emitAddress(mlir::OpBuilder &builder, mlir::Location loc, const GlobalArgument &global,
                        mlir::ValueRange indices);

/// The barrier that a slot (stage, phase) of an array stands for; no slot: the first.
mlir::Value getBarrierAddress(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value barrier,
                              mlir::ValueRange slot);

/// The address of a piece of 16 bytes of a shared tile: byte `byte` of its row, as the swizzle has
/// it.
mlir::Value emitChunkAddress(mlir::OpBuilder &builder, mlir::Location loc, SharedType type,
                             mlir::Value shared, mlir::Value row, mlir::Value byte);

/// Inline assembly with side effects on memory; one value per result type.
llvm::SmallVector<mlir::Value> emitAsm(mlir::OpBuilder &builder, mlir::Location loc,
                                       llvm::StringRef text, llvm::StringRef constraints,
                                       mlir::ValueRange operands, mlir::TypeRange results);

/// Lanes whose numbers differ in `bit` exchange values of 32 bits: the one without it gives `high`
/// for the other's `low`.
void emitExchange(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value hasBit, int64_t bit,
                  mlir::Value &low, mlir::Value &high);

/// Inline assembly after which `values` must be taken to be new, because other hardware may have
/// written them: each is an operand tied to a result. Vectors of 32 bits travel as i32.
llvm::SmallVector<mlir::Value> emitTiedAsm(mlir::OpBuilder &builder, mlir::Location loc,
                                           llvm::StringRef text, mlir::ValueRange values);

/// Replaces the op by branches on the warpgroup, each with its registers and, if elected, one
/// thread.
void lowerRoles(SpecializeOp op, const Kernel &kernel);

// The patterns, by the file they are in.
void populateBarrierPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateClearUnreadPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateCopyPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateCopySharePatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateDiagonalPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateElementwisePatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateGatherAsyncPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateGlobalPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateProductPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateRolePatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateTensorMemoryPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateTransposePatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateSynchronousCopyPatterns(mlir::RewritePatternSet &patterns,
                                     const PatternContext &context);
void populateRowPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
void populateWarpProductPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);
/// Computes each f32 element of a tile just before its first use, so that fewer live at once.
void sinkScalars(mlir::Operation *function);

/// Has loops around loops compute in each turn the values that inner loops do not read, where they
/// are read.
void keepInTurns(mlir::Operation *function);
/// Gives stages back after the first exponentials of a step, so that the others overlap with a
/// product.
void holdStages(mlir::Operation *function);
/// Leaves only scalar math that has instructions. Fails at an op that cannot be expanded to such.
llvm::LogicalResult expandMath(mlir::Operation *function);
/// Scalar math as the approximate instructions of the hardware.
void populateMathPatterns(mlir::RewritePatternSet &patterns);

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_REGISTERS_H
