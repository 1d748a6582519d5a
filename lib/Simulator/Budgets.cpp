//===- Budgets.cpp - what a block may have ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Budgets.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace llvm;
using mlir::Operation;

namespace attn::sim {

//===----------------------------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------------------------===//

void checkShared(mlir::func::FuncOp kernel, std::vector<Finding> &findings) {
  int64_t bytes = tile::getSharedBytes(kernel), most = tile::getMostSharedBytes(kernel);
  if (bytes > most)
    findings.push_back({Finding::Kind::Budget,
                        kernel,
                        "expected at most " + std::to_string(most) +
                            " bytes of shared memory, got " + std::to_string(bytes),
                        {}});
  struct Bytes {
    Operation *op;
    int64_t begin, end;
  };
  std::vector<Bytes> tiles;
  kernel.walk([&](tile::AllocSharedOp op) {
    if (!op.getOffset())
      return;
    int64_t begin = int64_t(*op.getOffset()),
            end = tile::getSharedEnd(begin,
                                     mlir::cast<tile::SharedType>(op.getType()).getSizeInBytes());
    tiles.push_back({op, begin, end});
    if (end > most)
      findings.push_back({Finding::Kind::OutOfBounds,
                          op,
                          "ends at byte " + std::to_string(end) + " of shared memory, which has " +
                              std::to_string(most),
                          {}});
  });
  kernel.walk([&](tile::BarrierInitOp op) {
    if (!op.getOffset())
      return;
    int64_t begin = int64_t(*op.getOffset()),
            end = tile::getSharedEnd(begin,
                                     mlir::cast<tile::BarrierType>(op.getType()).getSizeInBytes());
    for (const Bytes &tile : tiles)
      if (begin < tile.end && tile.begin < end)
        findings.push_back({Finding::Kind::OutOfBounds,
                            op,
                            "its barriers lie in a shared tile",
                            {{tile.op, "the tile is this"}}});
  });
}

//===----------------------------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------------------------===//

static bool isElementwise(Operation *op) {
  return mlir::isa_and_nonnull<mlir::arith::ArithDialect, mlir::math::MathDialect>(
      op->getDialect());
}

namespace {
/// Whether a tile can be made element by element where it is used: from scalars, rows and
/// coordinates, or read from memory at places made of them. Each value is asked about once, as a
/// value that is used twice doubles the ways to what it is made of.
class InPlace {
public:
  bool isMade(mlir::Value value) {
    if (!mlir::isa<mlir::RankedTensorType>(value.getType()))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto it = known.find(op); it != known.end())
      return it->second;
    return known[op] = canMake(op);
  }

private:
  bool canMake(Operation *op) {
    if (mlir::isa<mlir::arith::ConstantOp, tile::BroadcastOp, tile::CoordOp>(op))
      return true;
    return (isElementwise(op) || mlir::isa<tile::GatherOp, tile::LoadColumnsOp>(op)) &&
           llvm::all_of(op->getOperands(), [&](mlir::Value value) { return isMade(value); });
  }

  llvm::DenseMap<Operation *, bool> known;
};
} // namespace

/// Whether the tile is a step on the way to others of its block: a function of several steps is
/// computed element by element.
static bool isIntermediate(mlir::Value value) {
  Operation *op = value.getDefiningOp();
  return op && isElementwise(op) && !value.use_empty() &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return isElementwise(user) && user->getBlock() == op->getBlock();
         });
}

/// Bits of a thread that hold the value.
static int64_t countBits(mlir::Value value, InPlace &inPlace) {
  mlir::RankedTensorType type = tile::getTileType(value.getType());
  if (!type || !tile::hasLayout(type) || !mlir::isa<mlir::FloatType>(type.getElementType()) ||
      inPlace.isMade(value) || isIntermediate(value))
    return 0;
  return tile::getLayout(type).getNumRegisters() * type.getElementTypeBitWidth();
}

namespace {
using ValueSet = SmallSetVector<mlir::Value, 16>;

/// Walks blocks backwards with the set of values that are live.
struct Pressure {
  int64_t worst = 0;
  Operation *where = nullptr;
  InPlace inPlace;

  void visit(mlir::Block &block, const ValueSet &through) {
    ValueSet live;
    for (Operation &op : llvm::reverse(block)) {
      if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
        count(live, through, &op);
      for (mlir::Value result : op.getResults())
        live.remove(result);
      if (op.getNumRegions() > 0) {
        ValueSet inside(through);
        inside.insert(live.begin(), live.end());
        llvm::SetVector<mlir::Value> used;
        mlir::getUsedValuesDefinedAbove(op.getRegions(), used);
        // Values that a loop uses stay for its next step.
        if (mlir::isa<mlir::LoopLikeOpInterface>(op))
          inside.insert(used.begin(), used.end());
        for (mlir::Region &region : op.getRegions())
          for (mlir::Block &inner : region)
            visit(inner, inside);
        live.insert(used.begin(), used.end());
      }
      live.insert(op.operand_begin(), op.operand_end());
    }
  }

  void count(const ValueSet &live, const ValueSet &through, Operation *op) {
    int64_t bits = 0;
    for (mlir::Value value : live)
      bits += countBits(value, inPlace);
    for (mlir::Value value : through)
      if (!live.contains(value))
        bits += countBits(value, inPlace);
    if (bits <= worst)
      return;
    worst = bits;
    where = op;
  }
};
} // namespace

std::pair<int64_t, Operation *> countRegisters(mlir::Region &region) {
  Pressure pressure;
  for (mlir::Block &block : region)
    pressure.visit(block, {});
  return {pressure.worst / 32, pressure.where};
}

void checkRegisters(const Program &program, std::vector<Finding> &findings) {
  program.kernel->walk([&](tile::SpecializeOp op) {
    for (auto [index, region] : enumerate(op.getRoles())) {
      auto [registers, where] = countRegisters(region);
      const RoleInfo &role = program.roles[index];
      if (registers > role.registers)
        findings.push_back({Finding::Kind::Budget,
                            where,
                            "role '" + role.name + "' has " + std::to_string(role.registers) +
                                " registers per thread, its tiles take at least " +
                                std::to_string(registers) + " after this",
                            {{op, "the roles are these"}}});
    }
  });
}

} // namespace attn::sim
