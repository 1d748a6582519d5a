//===- Kernel.h - kernels, and the launch as their bodies know it -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_KERNEL_H
#define ATTN_LIB_CONVERSION_TILETONVVM_KERNEL_H

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace attn::tile {

using attn::kFragmentRows;
using attn::kLanes;

/// A tensor map a kernel receives, and what it was made for.
struct BoxParameter {
  int64_t columns, rows, swizzle;
  mlir::Value map;
};

/// How rows of a packed argument (plan.packed) are heads: row m * slots + j of key head k is row m
/// of head k * group + j.
struct PackedRows {
  int64_t slots;
  /// i32: the heads that share a key head.
  mlir::Value group;
};

/// Where the pages of a paged argument (plan.paged) are: row n of batch b is row n mod `page` of
/// page table[b, n / page].
struct PageTable {
  int64_t page;
  /// i32 or i64, its memory, and the strides of both dimensions, i64.
  mlir::Type element;
  mlir::Value pointer, strides[2];
  /// i32: the entries of a batch.
  mlir::Value count;
};

/// Which rows of a ragged argument (plan.ragged) are those of a batch: s20 of the attn dialect.
struct RaggedRows {
  /// i32 or i64, their memory, and their stride, i64.
  mlir::Type element;
  mlir::Value pointer, stride;
  /// i32: all rows, and the most that a sequence has.
  mlir::Value total, most;
};

/// A memref argument of a kernel, taken apart: only the parts that the body uses are there.
struct GlobalArgument {
  mlir::MemRefType type;
  /// !llvm.ptr<1>
  mlir::Value pointer;
  /// i32 and i64, one per dimension; constants where the type says so.
  llvm::SmallVector<mlir::Value> sizes, strides;
  llvm::SmallVector<BoxParameter> boxes;
  std::optional<PackedRows> packed = std::nullopt;
  std::optional<PageTable> paged = std::nullopt;
  std::optional<RaggedRows> ragged = std::nullopt;
  /// Whether its tiles lie in fragments.
  bool inFragments = false;
};

/// One kernel under conversion.
struct Kernel {
  mlir::LLVM::LLVMFuncOp function;
  const Machine *machine = nullptr;
  int64_t warpgroups = 0;
  /// Of each thread, when the block starts.
  int64_t launchRegisters = 0;
  /// i32: this thread's number in its block, and its warpgroup's, the latter known to be the same
  /// for a whole warp.
  mlir::Value thread, warpgroup;
  /// By the memref values that the body still uses while it is being converted.
  llvm::DenseMap<mlir::Value, GlobalArgument> arguments;

  /// The kernel argument that a memref comes from, or a diagnostic at `op`.
  mlir::FailureOr<const GlobalArgument *> getArgument(mlir::Operation *op,
                                                      mlir::Value memref) const;
};

/// The kernels of a module by their functions.
using KernelMap = llvm::DenseMap<mlir::Operation *, Kernel>;

/// The columns and rows of one TMA box of a shared tile: one slab, as many rows as one copy takes
/// and, of pages of `page` rows, as lie in one page wherever the tile is.
std::pair<int64_t, int64_t> getBoxShape(const Machine &machine, SharedType type, int64_t page = 0);

/// Turns a kernel function into an llvm.func with the parameters its body needs and attaches the
/// plan. The body is moved, its memrefs are placeholders that `Kernel::arguments` explains.
mlir::FailureOr<Kernel> convertKernelFunction(mlir::func::FuncOp function);

/// Emits the wait of a programmatic kernel, and, if `next` is one, the signal that it may start.
/// `next` is the kernel after this one in the module, or null.
void emitLaunchOrder(mlir::func::FuncOp kernel, mlir::func::FuncOp next);

/// The start of the block's dynamic shared memory, !llvm.ptr<3>.
mlir::Value getSharedBase(mlir::OpBuilder &builder, mlir::Location loc);

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_KERNEL_H
