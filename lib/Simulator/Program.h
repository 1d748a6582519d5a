//===- Program.h - a kernel as a list of instructions -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Structured control flow becomes jumps, values become numbered registers. A fiber is then a
// position in the list and a file of registers: it can stop at any instruction and go on later,
// without threads or stacks of its own.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_PROGRAM_H
#define ATTN_LIB_SIMULATOR_PROGRAM_H

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Interpreter/ScalarOps.h"
#include "lib/Simulator/CostModel.h"
#include "lib/Simulator/TileMath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace attn::sim {

enum class Code : uint8_t {
  // Control. ForTest: in = (iv, bound), jumps if done. ForStep: in = (iv, step), out = iv.
  Jump,
  JumpIfNot,
  Move,
  ForTest,
  ForStep,
  Roles,
  Rejoin,
  End,
  // Scalars.
  Constant,
  Scalar,
  Affine,
  BlockId,
  GridDim,
  Dim,
  LoadScalar,
  StoreScalar,
  Warpgroup,
  // Register tiles.
  TileConstant,
  Broadcast,
  Coord,
  Reduce,
  SumDiagonals,
  Vote,
  Elementwise,
  ConvertLayout,
  Load,
  Gather,
  Store,
  ScatterAdd,
  MmaRegisters,
  // Rings, barriers, copies, products: where parties meet.
  AllocShared,
  Slot,
  Next,
  UnitSlot,
  NextPhase,
  TensorPlace,
  Stage,
  BarrierInit,
  Expect,
  Arrive,
  Wait,
  Sync,
  NamedBarrier,
  Fence,
  StoreShared,
  LoadColumns,
  LoadShared,
  Transpose,
  MarkRead,
  ClearUnread,
  CopyThreads,
  CopyAsync,
  FindRows,
  GatherAsync,
  ArriveLanded,
  CopyShare,
  CopyWait,
  StoreAsync,
  StoreWait,
  MmaAsync,
  MmaCommit,
  MmaWait,
  AllocTensor,
  DeallocTensor,
  LoadTensor,
  StoreTensor,
  ScaleTensor,
  MmaTensor
};

/// Whether others can see the instruction happen, so that it must run in the order of time.
inline bool isMeeting(Code code) { return code >= Code::BarrierInit; }

/// The type of elements; nothing for types that the simulator does not know.
std::optional<Number> getNumber(mlir::Type type);

/// More elements than a block can hold: a tile takes time and memory by the element.
inline constexpr int64_t kMaxTileElements = int64_t(1) << 20;

/// Facts about a register tile's type. Extents are of the whole tile.
struct TileInfo {
  Number number = Number::F32;
  /// 64 less the width of integers.
  unsigned integerShift = 0;
  int64_t rows = 0, columns = 1;
  /// That the rows are spread over; 1 without a layout.
  int64_t warpgroups = 1;
  /// Of a blocked layout, the rows of each warpgroup; else a warpgroup's rows are consecutive.
  std::vector<std::vector<int64_t>> rowsOf;
  bool isVector = false;

  int64_t getLocalRows() const { return rows / warpgroups; }
  int64_t getRow(int64_t warpgroup, int64_t row) const {
    return rowsOf.empty() ? warpgroup * getLocalRows() + row : rowsOf[warpgroup][row];
  }
};

/// Those of a tile, as the block's warpgroups of so many threads hold it.
llvm::Expected<std::unique_ptr<TileInfo>>
makeTileInfo(mlir::Operation *op, mlir::RankedTensorType tile, int64_t threads);

struct Instruction {
  Code code;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<unsigned, 4> in, out;
  /// Jumps: where to. Roles: one per warpgroup of the block, then the rejoin.
  llvm::SmallVector<unsigned, 4> targets;
  /// Of the result, or of the stored value.
  const TileInfo *tile = nullptr;
  /// Of a product's lhs in registers.
  const TileInfo *lhsTile = nullptr;
  ScalarOp scalar;
  FastOp fast = FastOp::None;
  /// Of a scalar result.
  Number number = Number::Integer;
  RuntimeValue constant;
  mlir::AffineMap map;
  bool isMin = false, isMax = false;
  /// Of a store: whether it adds to memory.
  bool isAdd = false;
  /// Dimension, bytes, threads, arrivals, pending groups, index of a place or barrier array.
  int64_t value = 0;
  /// Products: M, N, K of one warpgroup. Copies: the tile's rows and columns.
  int64_t m = 0, n = 0, k = 0;
  /// Products: so many columns of a lhs in shared memory are in a register of the fiber.
  int64_t kept = 0;
  unsigned keptRegister = 0;
  Work work;

  /// The effort of an instruction, and the numbers that a product multiplies in the time of one.
  static constexpr int64_t kInstruction = 64, kProducts = 64;

  /// How long it takes to run, as elements of tiles, whose values are computed `withNumbers`.
  int64_t getEffort(bool withNumbers) const {
    if (!withNumbers)
      return kInstruction;
    int64_t products = m * n * k / kProducts;
    return kInstruction + (products ? products : tile ? tile->getLocalRows() * tile->columns : 0);
  }
};

/// One role, or the whole block before and without tile.specialize.
struct RoleInfo {
  std::string name;
  int64_t first = 0, warpgroups = 1, registers = 0;
  bool isElected = false;
};

class Program {
public:
  /// Reads a kernel. An error names the op that the simulator cannot run.
  static llvm::Expected<Program> compile(mlir::func::FuncOp kernel);

  mlir::func::FuncOp kernel;
  const Machine *machine = nullptr;
  std::vector<Instruction> instructions;
  unsigned numRegisters = 0;
  /// Of a fiber: those of a warpgroup or, where warps multiply, of a warp.
  int64_t threads = 0;
  /// Fibers of a block: its warpgroups, or its warps, or 1 for a program of room 4, whose tiles
  /// have no layouts.
  int64_t numWarpgroups = 1;
  std::vector<RoleInfo> roles;
  /// The role of each warpgroup after tile.specialize; the block otherwise.
  RoleInfo block;
  llvm::SmallVector<unsigned> roleOf;
  /// Places and barrier arrays in the order of the kernel, with their offsets.
  std::vector<mlir::Operation *> places, barriers;
  std::vector<int64_t> placeOffsets;
  /// Places of tensor memory, each with one for each unit of the widest role, in this order.
  std::vector<mlir::Operation *> tensorPlaces;
  /// The registers of the kernel's arguments.
  llvm::SmallVector<unsigned> arguments;

private:
  friend class Compiler;
  llvm::DenseMap<mlir::Type, std::unique_ptr<TileInfo>> tiles;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_PROGRAM_H
