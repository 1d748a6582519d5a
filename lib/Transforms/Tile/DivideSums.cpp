//===- DivideSums.cpp - tile-divide-sums -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Two sums of a loop that are too many registers for one thread become the business of two roles,
// each with all rows of the block. The giver computes the values that both sums need. Of these, one
// tile of 16 bits goes to the taker, through shared memory:
//
//   giver                                   taker
//   %s = tile.mma %k, %q                    %t = tile.mma %v, %o
//   %w = narrow(exp2(%s))                   %w = tile.load_shared %place
//   tile.store %w to %place                 %d = narrow(%w * %t)
//   %a = tile.mma %w, %o, %sum              %b = tile.mma %d, %q, %sum
//
// Each role computes for itself the values that come from no product (tile-outline-roles).
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "lib/Transforms/Tile/RoleBudgets.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace attn::tile {
#define GEN_PASS_DEF_DIVIDESUMSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

namespace {
using Ops = llvm::SetVector<Operation *>;

/// One of both sums in a loop's body: the product that adds to it, and what that is made of there.
struct Sum {
  MmaOp product;
  Ops parts;

  /// Whether the op makes what the sum is made of.
  bool has(Operation *op) const { return op == product || parts.contains(op); }
};

/// A loop's body.
struct Step {
  Block *body;
  Sum giver, taker;
  /// The tile that the giver hands over.
  Value handed;
};

class Division {
public:
  explicit Division(func::FuncOp kernel) : kernel(kernel) {}

  LogicalResult run() {
    if (failed(findSteps()))
      return failure();
    setRoles();
    for (Step &step : steps)
      handOver(step);
    return assignRest();
  }

private:
  LogicalResult findSteps();
  /// Finds what is given, and by whom, where `sums` are the two of a body.
  LogicalResult findGiven(Step &step, Sum first, Sum second);
  void setRoles();
  void handOver(Step &step);
  /// Roles of what stands around loops: of the sum that it reads.
  LogicalResult assignRest();
  RoleAttr findRole(Value value, DenseSet<Value> &visited) const;

  void assign(Operation *op, RoleAttr role) {
    op->setAttr(TileDialect::kRoleAttrName, role.getName());
  }

  func::FuncOp kernel;
  SmallVector<Step> steps;
  RoleAttr giver, taker;
  Value place;
};
} // namespace

/// The product adds to what a loop around it carries from turn to turn, perhaps under a condition.
static bool isCarried(MmaOp product) {
  return isa_and_nonnull<BlockArgument>(product.getAcc()) &&
         llvm::is_contained(product->getBlock()->getTerminator()->getOperands(),
                            product.getResult());
}

/// The ops that make the product's factors, in its block.
static Sum makeSum(MmaOp product) {
  Sum sum{product, {}};
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) { return op->getBlock() == product->getBlock(); };
  for (Value factor : {product.getLhs(), product.getRhs()})
    (void)getBackwardSlice(factor, &sum.parts, options);
  return sum;
}

LogicalResult Division::findSteps() {
  WalkResult walk = kernel.walk([&](Block *block) -> WalkResult {
    SmallVector<Sum> sums;
    for (MmaOp product : block->getOps<MmaOp>())
      if (isCarried(product))
        sums.push_back(makeSum(product));
    if (sums.empty())
      return WalkResult::advance();
    if (sums.size() != 2)
      return sums.front().product.emitOpError("expected two sums of a loop to divide, got ")
             << sums.size();
    Step &step = steps.emplace_back();
    step.body = block;
    return findGiven(step, std::move(sums[0]), std::move(sums[1]));
  });
  if (walk.wasInterrupted())
    return failure();
  if (steps.empty())
    return kernel.emitOpError("expected loops with two sums to divide, got none");
  return success();
}

LogicalResult Division::findGiven(Step &step, Sum first, Sum second) {
  // The ops that both sums take from products.
  Ops common;
  for (Operation &op : *step.body) {
    bool follows = llvm::any_of(
        op.getOperands(), [&](Value operand) { return common.contains(operand.getDefiningOp()); });
    if (first.parts.contains(&op) && second.parts.contains(&op) && (isa<MmaOp>(op) || follows))
      common.insert(&op);
  }
  auto hasOwnProduct = [&](const Sum &sum) {
    return llvm::any_of(sum.parts,
                        [&](Operation *op) { return isa<MmaOp>(op) && !common.contains(op); });
  };
  if (hasOwnProduct(first) == hasOwnProduct(second))
    return second.product.emitOpError("expected one of two sums to have a product of its own, and "
                                      "the other none");
  if (hasOwnProduct(first))
    std::swap(first, second);
  step.giver = std::move(first);
  step.taker = std::move(second);
  auto isHanded = [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return step.taker.has(user) && !common.contains(user);
    });
  };
  auto handed = llvm::filter_to_vector(common, isHanded);
  if (handed.size() != 1)
    return step.taker.product.emitOpError("expected both sums to have one tile in common, got ")
           << handed.size();
  step.handed = handed[0]->getResult(0);
  auto type = dyn_cast<RankedTensorType>(step.handed.getType());
  if (!type || !type.getElementType().isIntOrFloat() || type.getElementTypeBitWidth() != 16 ||
      !isa_and_nonnull<AccAttr>(type.getEncoding()))
    return step.taker.product.emitOpError("expected what both sums have in common to be a tile of "
                                          "16 bits in #tile.acc, got ")
           << step.handed.getType();
  return success();
}

void Division::setRoles() {
  auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  int64_t each = attribute.getWarpgroups();
  attn::RoleBudget budget = getRoleBudget(kernel, 2 * each);
  Builder b(kernel.getContext());
  auto makeRole = [&](StringRef name, int64_t warpgroups, int64_t registers, bool isElected) {
    return RoleAttr::get(b.getContext(), b.getStringAttr(name), warpgroups, registers, isElected);
  };
  RoleAttr producer = makeRole("producer", 1, budget.producer, true);
  giver = makeRole("giver", each, budget.consumer, false);
  taker = makeRole("taker", each, budget.consumer, false);
  kernel->setAttr(TileDialect::kRolesAttrName, b.getArrayAttr({producer, giver, taker}));
}

void Division::handOver(Step &step) {
  auto type = cast<RankedTensorType>(step.handed.getType());
  Location loc = step.handed.getLoc();
  if (!place) {
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
    int64_t swizzle = attn::getFilledSwizzle(type.getDimSize(1) * 2);
    auto shared = SharedType::get(b.getContext(), type.getShape(), type.getElementType(), swizzle,
                                  /*stages=*/1);
    place = AllocSharedOp::create(b, loc, shared, IntegerAttr());
  }
  OpBuilder b(kernel.getContext());
  b.setInsertionPointAfterValue(step.handed);
  Operation *store = StoreOp::create(b, loc, step.handed, place, ValueRange());
  auto load = LoadSharedOp::create(b, loc, type, place);
  assign(store, giver);
  assign(load, taker);
  // Those of both sums stand in front.
  step.handed.replaceUsesWithIf(load, [&](OpOperand &use) {
    return use.getOwner() != store && step.taker.has(use.getOwner());
  });
  for (Operation &op : *step.body)
    if (isa<MmaOp, LoadColumnsOp>(op))
      assign(&op, step.giver.has(&op) ? giver : taker);
}

/// The role of the sum that the value comes from; null if it comes from none.
RoleAttr Division::findRole(Value value, DenseSet<Value> &visited) const {
  if (!visited.insert(value).second)
    return {};
  Operation *op = value.getDefiningOp();
  for (const Step &step : steps)
    for (const auto &[sum, role] : {std::pair(&step.giver, giver), std::pair(&step.taker, taker)})
      if (op == sum->product)
        return role;
  if (!op)
    return {};
  auto among = [&](ValueRange values) {
    RoleAttr role;
    for (Value other : values)
      if (!role)
        role = findRole(other, visited);
    return role;
  };
  if (op->getNumRegions() == 0)
    return among(op->getOperands());
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  if (!branch)
    return {};
  SmallVector<Value> sources;
  branch.getPredecessorValues(RegionSuccessor(op, op->getResults()),
                              int(cast<OpResult>(value).getResultNumber()), sources);
  return among(sources);
}

LogicalResult Division::assignRest() {
  WalkResult walk = kernel.walk([&](StoreOp store) -> WalkResult {
    if (store->hasAttr(TileDialect::kRoleAttrName) || !isa<MemRefType>(store.getDest().getType()))
      return WalkResult::advance();
    DenseSet<Value> visited;
    RoleAttr role = findRole(store.getValue(), visited);
    if (!role)
      return store.emitOpError("expected what is stored to come from one of the kernel's sums");
    assign(store, role);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

namespace {
struct DivideSumsPass
    : KernelPass<attn::tile::impl::DivideSumsPassBase<DivideSumsPass>,
                 attn::within(attn::Room::Placed), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    if (!kernel->hasAttr(TileDialect::kDividedAttrName))
      return success();
    if (kernel->hasAttr(TileDialect::kRolesAttrName))
      return kernel.emitOpError("expected no tile.roles where sums are to be divided");
    auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
    if (int64_t most = getMachine(kernel).getMostConsumers(); 2 * attribute.getWarpgroups() > most)
      return kernel.emitOpError("expected at most ")
             << most / 2 << " warpgroups for each sum, got " << attribute.getWarpgroups();
    kernel->removeAttr(TileDialect::kDividedAttrName);
    return Division(kernel).run();
  }
};
} // namespace
