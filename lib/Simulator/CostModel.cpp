//===- CostModel.cpp - how long things take ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/CostModel.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn::sim {

const char *getName(Resource resource) {
  static constexpr const char *names[] = {"tensor", "exp", "issue", "shared", "memory", "hbm"};
  return names[unsigned(resource)];
}

/// Instructions per element, and those of the unit for transcendental functions.
static std::pair<double, double> getInstructions(Operation *op) {
  using Pair = std::pair<double, double>;
  return llvm::TypeSwitch<Operation *, Pair>(op)
      .Case<math::Exp2Op, math::RsqrtOp, math::SqrtOp, math::Log2Op>(
          [](auto) { return Pair(1, 1); })
      .Case<math::ExpOp, math::LogOp>([](auto) { return Pair(2, 1); })
      .Case<math::TanhOp>([](auto) { return Pair(1, 1); })
      .Case<math::SinOp, math::CosOp, math::ErfOp, math::PowFOp>([](auto) { return Pair(8, 2); })
      .Case<arith::DivFOp>([](auto) { return Pair(2, 1); })
      .Case<arith::RemFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
            arith::FloorDivSIOp, arith::CeilDivSIOp>([](auto) { return Pair(12, 1); })
      // Pairs in one instruction, at half rate.
      .Case<arith::TruncFOp, arith::ExtFOp>([](auto) { return Pair(1, 0); })
      // Maxima run at half rate.
      .Case<arith::MaximumFOp, arith::MinimumFOp>([](auto) { return Pair(2, 0); })
      .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>([](auto) { return Pair(0.5, 0); })
      .Case<tile::ReduceOp>([](auto reduce) {
        return reduce.getCombiner() == tile::Combiner::Max ? Pair(1.5, 0) : Pair(1, 0);
      })
      // Three exchanges between lanes, and additions.
      .Case<tile::SumDiagonalsOp>([](auto) { return Pair(5, 0); })
      .Case<tile::GatherOp, tile::LoadOp>([](auto) { return Pair(6, 0); })
      // Pairs in one access.
      .Case<tile::LoadSharedOp>([](auto) { return Pair(0.5, 0); })
      // Pairs for two rows.
      .Case<tile::LoadColumnsOp>([](auto) { return Pair(0.25, 0); })
      .Case<tile::ScatterAddOp>([](auto) { return Pair(6, 0); })
      .Case<tile::StoreOp>([](auto) { return Pair(2, 0); })
      // In registers already, or known when compiling.
      .Case<tile::BroadcastOp, tile::CoordOp, tile::ConvertLayoutOp, arith::ConstantOp,
            arith::IndexCastOp>([](auto) { return Pair(0, 0); })
      .Default([](Operation *) { return Pair(1, 0); });
}

Work getWork(const Costs &costs, Operation *op, int64_t elements) {
  auto [instructions, exps] = getInstructions(op);
  Work work;
  work.issue = double(elements) * instructions / costs.lanes;
  work.exp = double(elements) * exps / costs.exps;
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    // Sums are needed at the end of the loop only.
    work.isReduction = reduce.getCombiner() == tile::Combiner::Max;
  return work;
}

double getHBMBytes(const Chip &chip) {
  // Rings of copies reach 4.59 of the 4.8 TB/s that an H200 has by its data sheet.
  constexpr double share = 0.956;
  return share * 1000 * chip.memoryTBs / (chip.clockGHz * double(chip.multiprocessors));
}

ProductCost getProductCost(const Machine &machine, int64_t m, int64_t n, int64_t k,
                           unsigned elementBits, int64_t sharedColumns) {
  const Costs &costs = machine.costs;
  ProductCost cost;
  double flops = costs.tensorFlops * (elementBits == 8 ? 2 : 1);
  cost.tensor = 2.0 * double(m * n * k) / flops;
  // Every product reads the other operand again.
  double bytes = double(m) / double(machine.product.rows) * double(n * k) * elementBits / 8;
  bytes += double(m * sharedColumns) * elementBits / 8;
  cost.shared = bytes / costs.sharedBytes;
  return cost;
}

} // namespace attn::sim
