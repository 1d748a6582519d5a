//===- OutlineRoles.cpp - tile-outline-roles ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A role keeps the ops that carry its name, their operands, the control flow around them, and the
// carried values that they need. The values that a region op forwards belong together: an initial
// value, the block argument that takes it, the value that the terminator passes on, and the result
// are one group. A role keeps or drops a group as a whole.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace attn::tile {
#define GEN_PASS_DEF_OUTLINEROLESPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

static bool isOnTiles(Operation *op) {
  auto isTile = [](Type type) { return bool(getTileType(type)); };
  return llvm::any_of(op->getResultTypes(), isTile) || llvm::any_of(op->getOperandTypes(), isTile);
}

namespace {
/// The values that the region ops of a kernel forward.
class Forwarding {
public:
  explicit Forwarding(func::FuncOp kernel) {
    kernel.walk([&](RegionBranchOpInterface op) {
      RegionBranchSuccessorMapping mapping;
      op.getSuccessorOperandInputMapping(mapping);
      for (auto &[operand, inputs] : mapping)
        for (Value input : inputs) {
          groups.unionSets(operand, input.getAsOpaquePointer());
          operands.insert({operand, operand});
        }
    });
  }

  /// The group of an operand, block argument or result; null when it is not forwarded.
  const void *getGroup(const void *member) const {
    auto it = groups.findLeader(member);
    return it == groups.member_end() ? nullptr : *it;
  }
  const void *getGroup(Value value) const { return getGroup(value.getAsOpaquePointer()); }

  SmallVector<OpOperand *> getOperands(const void *group) const {
    SmallVector<OpOperand *> list;
    for (const void *member : groups.members(groups.getLeaderValue(group)))
      if (OpOperand *operand = operands.lookup(member))
        list.push_back(operand);
    return list;
  }

private:
  llvm::EquivalenceClasses<const void *> groups;
  DenseMap<const void *, OpOperand *> operands;
};

/// The part of the program that one role keeps.
class Slice {
public:
  Slice(const Forwarding &forwarding, const llvm::SetVector<Operation *> &program, RoleAttr role)
      : forwarding(forwarding), program(program), role(role) {}

  LogicalResult run() {
    for (Operation *op : program)
      op->walk([&](Operation *inner) {
        if (getKernelRole(inner) == role)
          work.push_back(inner);
      });
    while (!work.empty())
      if (failed(keep(work.pop_back_val())))
        return failure();
    return success();
  }

  RoleAttr getRole() const { return role; }
  bool keeps(Operation *op) const { return ops.contains(op); }
  /// Whether an operand, result or block argument stays: it does unless it is forwarded in vain.
  bool keeps(const void *member) const {
    const void *group = forwarding.getGroup(member);
    return !group || groups.contains(group);
  }
  bool keeps(Value value) const { return keeps(value.getAsOpaquePointer()); }

private:
  LogicalResult keep(Operation *op);
  void need(Value value);

  const Forwarding &forwarding;
  const llvm::SetVector<Operation *> &program;
  RoleAttr role;
  SmallVector<Operation *> work;
  DenseSet<Operation *> ops;
  DenseSet<const void *> groups;
};
} // namespace

/// The op that stands directly in the kernel and is or has `op`.
static Operation *getOutermost(Operation *op) {
  while (!isa<func::FuncOp>(op->getParentOp()))
    op = op->getParentOp();
  return op;
}

LogicalResult Slice::keep(Operation *op) {
  if (!program.contains(getOutermost(op)) || !ops.insert(op).second)
    return success();
  if (RoleAttr other = getKernelRole(op); other && other != role)
    return op->emitOpError("expected role ")
           << role.getName() << " to read what role " << other.getName()
           << " computes in shared memory, got a value";
  if (role.getElected() && isOnTiles(op) && !isa<CopyAsyncOp>(op) && op->getNumRegions() == 0 &&
      !op->hasTrait<OpTrait::IsTerminator>())
    return op->emitOpError("expected scalars that do not come from tiles in elected role ")
           << role.getName();
  for (Region &region : op->getRegions())
    if (!region.empty() && (!region.hasOneBlock() || !region.front().mightHaveTerminator()))
      return op->emitOpError("expected regions of one block with a terminator around or among ops "
                             "of roles");
  if (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent)) {
    if (!isa<RegionBranchOpInterface>(parent))
      return parent->emitOpError("expected control flow (RegionBranchOpInterface) around ops of "
                                 "different roles");
    work.push_back(parent);
  }
  auto needOperands = [&](Operation *user) {
    for (OpOperand &operand : user->getOpOperands())
      if (!forwarding.getGroup(&operand))
        need(operand.get());
  };
  needOperands(op);
  // Ops inside of other ops with regions stay with them.
  if (op->getNumRegions() > 0 && !isa<RegionBranchOpInterface>(op))
    op->walk([&](Operation *inner) { work.push_back(inner); });
  for (Region &region : op->getRegions())
    for (Block &block : region)
      needOperands(block.getTerminator());
  return success();
}

void Slice::need(Value value) {
  if (const void *group = forwarding.getGroup(value); group && groups.insert(group).second)
    for (OpOperand *operand : forwarding.getOperands(group))
      need(operand->get());
  if (Operation *op = value.getDefiningOp())
    work.push_back(op);
}

namespace {
/// Clones what a slice keeps.
class Cloner {
public:
  Cloner(OpBuilder &builder, const Slice &slice) : b(builder), slice(slice) {}

  void clone(Operation *op) {
    if (!slice.keeps(op))
      return;
    if (auto begin = dyn_cast<PartBeginOp>(op))
      return mapping.map(begin.getResult(), chooseBegin(begin));
    Operation *copy = op->getNumRegions() > 0 ? cloneRegionOp(op) : b.clone(*op, mapping);
    copy->removeAttr(TileDialect::kRoleAttrName);
  }

private:
  /// The number that the role, or each of its warpgroups, begins at.
  Value chooseBegin(PartBeginOp op) {
    Location loc = op.getLoc();
    if (!takesParts(slice.getRole(), op))
      return mapping.lookupOrDefault(op.getAll());
    Value warpgroup = WarpgroupOp::create(b, loc);
    Value begin = mapping.lookupOrDefault(op.getParts().front());
    for (size_t part = 1; part < op.getParts().size(); ++part) {
      Value isBefore = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, warpgroup,
                                             arith::ConstantIndexOp::create(b, loc, part));
      begin = arith::SelectOp::create(b, loc, isBefore, begin,
                                      mapping.lookupOrDefault(op.getParts()[part]));
    }
    return begin;
  }

  /// The op with the operands and results that stay, and empty regions.
  Operation *cloneShell(Operation *op) {
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands())
      if (slice.keeps(&operand))
        operands.push_back(mapping.lookupOrDefault(operand.get()));
    SmallVector<Value> results;
    for (Value result : op->getResults())
      if (slice.keeps(result))
        results.push_back(result);
    Operation *shell = Operation::create(
        op->getLoc(), op->getName(), ValueRange(results).getTypes(), operands,
        NamedAttrList(op->getDiscardableAttrDictionary()), op->getPropertiesStorage(),
        /*successors=*/BlockRange(), op->getNumRegions());
    b.insert(shell);
    mapping.map(results, shell->getResults());
    return shell;
  }

  Operation *cloneRegionOp(Operation *op) {
    Operation *shell = cloneShell(op);
    OpBuilder::InsertionGuard guard(b);
    for (auto [from, to] : llvm::zip_equal(op->getRegions(), shell->getRegions()))
      for (Block &block : from) {
        Block *copy = b.createBlock(&to, to.end());
        for (BlockArgument argument : block.getArguments())
          if (slice.keeps(argument))
            mapping.map(argument, copy->addArgument(argument.getType(), argument.getLoc()));
        for (Operation &inner : block.without_terminator())
          clone(&inner);
        cloneShell(block.getTerminator());
      }
    return shell;
  }

  OpBuilder &b;
  const Slice &slice;
  IRMapping mapping;
};
} // namespace

/// The ops that roles run for themselves: ops that carry a role or are on tiles, and all ops that
/// depend on these. The others stay in front, where they run once.
static llvm::SetVector<Operation *> findProgram(Block &body) {
  llvm::SetVector<Operation *> program;
  for (Operation &op : body.without_terminator()) {
    WalkResult walk = op.walk([&](Operation *inner) {
      bool follows = llvm::any_of(inner->getOperands(), [&](Value operand) {
        return program.contains(operand.getDefiningOp());
      });
      // Slots are counted by each role on its own.
      bool isOwn = isa<SlotOp, PartBeginOp>(inner) || isOnTiles(inner) || getKernelRole(inner);
      return follows || isOwn ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      program.insert(&op);
  }
  return program;
}

/// Checks the roles as tile.specialize asks for (specialize_c1 to c3). Their warpgroups are the
/// kernel's.
static LogicalResult checkRoles(func::FuncOp kernel, ArrayRef<RoleAttr> roles) {
  if (roles.size() < 2)
    return kernel.emitOpError("expected tile.roles of at least two roles, got ") << roles.size();
  const attn::Machine &machine = getMachine(kernel);
  int64_t total = 0, registers = 0;
  for (RoleAttr role : roles) {
    int64_t size = role.getWarpgroups(), budget = role.getRegisters();
    if (!machine.allowsRole(size, budget))
      return kernel.emitOpError("expected tile.roles of ")
             << machine.listRoles() << ", got " << size << " and " << budget << " in "
             << role.getName();
    total += size;
    registers += size * machine.warpgroupThreads * budget;
  }
  if (total > machine.warpgroups)
    return kernel.emitOpError("expected tile.roles of 1 to ")
           << machine.warpgroups << " warpgroups, got " << total;
  // The registers with which the threads of the block start (specialize_c3).
  int64_t most = machine.getBlockRegisters(total, getResident(kernel));
  if (registers > most)
    return kernel.emitOpError("expected tile.roles of at most ")
           << most << " registers, got " << registers;
  return success();
}

static LogicalResult outline(func::FuncOp kernel, ArrayAttr attribute) {
  auto roles = llvm::to_vector(attribute.getAsRange<RoleAttr>());
  if (failed(checkRoles(kernel, roles)))
    return failure();
  int64_t total = 0;
  for (RoleAttr role : roles)
    total += role.getWarpgroups();
  Block &body = kernel.getBody().front();
  llvm::SetVector<Operation *> program = findProgram(body);
  Forwarding forwarding(kernel);
  OpBuilder b(body.getTerminator());
  Location loc = kernel.getLoc();
  SyncOp::create(b, loc);
  SmallVector<Attribute> names;
  SmallVector<int64_t> warpgroups, registers;
  SmallVector<bool> elected;
  for (RoleAttr role : roles) {
    names.push_back(role.getName());
    warpgroups.push_back(role.getWarpgroups());
    registers.push_back(role.getRegisters());
    elected.push_back(role.getElected());
  }
  auto specialize = SpecializeOp::create(b, loc, b.getArrayAttr(names), warpgroups, registers,
                                         elected, roles.size());
  for (auto [role, region] : llvm::zip_equal(roles, specialize.getRoles())) {
    Slice slice(forwarding, program, role);
    if (failed(slice.run()))
      return failure();
    OpBuilder inner(kernel.getContext());
    inner.createBlock(&region);
    Cloner cloner(inner, slice);
    for (Operation *op : program)
      cloner.clone(op);
    YieldOp::create(inner, loc);
  }
  for (Operation *op : llvm::reverse(program))
    op->erase();
  auto before = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  kernel->setAttr(TileDialect::kKernelAttrName, before.withWarpgroups(total));
  kernel->removeAttr(TileDialect::kRolesAttrName);
  return success();
}

namespace {
struct OutlineRolesPass
    : KernelPass<attn::tile::impl::OutlineRolesPassBase<OutlineRolesPass>,
                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    auto roles = kernel->getAttrOfType<ArrayAttr>(TileDialect::kRolesAttrName);
    return roles ? outline(kernel, roles) : success();
  }
};
} // namespace
