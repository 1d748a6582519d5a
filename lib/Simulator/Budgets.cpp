//===- Budgets.cpp - what a block may have ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Budgets.h"
#include "lib/Analysis/Registers/CountRegisters.h"

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

void checkRegisters(const Program &program, std::vector<Finding> &findings) {
  program.kernel->walk([&](tile::SpecializeOp op) {
    for (auto [index, region] : enumerate(op.getRoles())) {
      tile::RegisterCount taken = tile::countRegisters(region);
      const RoleInfo &role = program.roles[index];
      if (taken.registers > role.registers)
        findings.push_back({Finding::Kind::Budget,
                            taken.where,
                            "role '" + role.name + "' has " + std::to_string(role.registers) +
                                " registers per thread, its tiles take at least " +
                                std::to_string(taken.registers) + " after this",
                            {{op, "the roles are these"}}});
    }
  });
}

} // namespace attn::sim
