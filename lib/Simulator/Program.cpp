//===- Program.cpp - a kernel as a list of instructions ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Program.h"
#include "dialects/Tile/IR/TileClearOps.h"
#include "dialects/Tile/IR/TileTensorOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::ValueRange;

namespace attn::sim {

static FastOp getFastOp(Operation *op) {
  return TypeSwitch<Operation *, FastOp>(op)
      .Case<mlir::arith::AddFOp>([](auto) { return FastOp::Add; })
      .Case<mlir::arith::SubFOp>([](auto) { return FastOp::Sub; })
      .Case<mlir::arith::MulFOp>([](auto) { return FastOp::Mul; })
      .Case<mlir::arith::DivFOp>([](auto) { return FastOp::Div; })
      .Case<mlir::arith::MaximumFOp>([](auto) { return FastOp::Max; })
      .Case<mlir::arith::MaxNumFOp>([](auto) { return FastOp::MaxNum; })
      .Case<mlir::arith::NegFOp>([](auto) { return FastOp::Neg; })
      .Case<mlir::math::FmaOp>([](auto) { return FastOp::Fma; })
      .Case<mlir::math::Exp2Op>([](auto) { return FastOp::Exp2; })
      .Case<mlir::arith::TruncFOp, mlir::arith::ExtFOp>([](auto) { return FastOp::Copy; })
      .Default([](Operation *) { return FastOp::None; });
}

class Compiler {
public:
  explicit Compiler(Program &program) : program(program) {}
  Error run();

private:
  Error compileBlock(mlir::Block &block);
  Error compileOp(Operation &op);
  Error compileScalar(Operation &op);
  Error compileTileOp(Operation &op);
  Error compileAsyncOp(Operation &op, bool &isKnown);
  Error compileTensorProduct(tile::MmaTensorOp op);
  Error compileProduct(Operation *op, mlir::Value lhs, mlir::Value rhs, mlir::Value acc,
                       mlir::Value kept, RankedTensorType result, bool transposeLhs, bool isAsync);
  Error compileFor(mlir::scf::ForOp op);
  Error compileIf(mlir::scf::IfOp op);
  Error compileWhile(mlir::scf::WhileOp op);
  Error compileRoles(tile::SpecializeOp op);
  Error setUpRoles();

  Instruction &add(Code code, Operation *op) {
    Instruction &instruction = program.instructions.emplace_back();
    instruction.code = code;
    instruction.op = op;
    return instruction;
  }
  /// With the op's operands and results.
  Instruction &addWhole(Code code, Operation *op) {
    Instruction &instruction = add(code, op);
    for (mlir::Value operand : op->getOperands())
      instruction.in.push_back(getRegister(operand));
    for (mlir::Value result : op->getResults())
      instruction.out.push_back(getRegister(result));
    return instruction;
  }
  void addMove(Operation *op, ValueRange from, ValueRange to) {
    if (from.empty())
      return;
    Instruction &move = add(Code::Move, op);
    for (auto [source, target] : zip_equal(from, to)) {
      move.in.push_back(getRegister(source));
      move.out.push_back(getRegister(target));
    }
  }
  unsigned here() const { return program.instructions.size(); }
  unsigned getRegister(mlir::Value value) {
    auto [it, isNew] = registers.try_emplace(value, program.numRegisters);
    program.numRegisters += isNew;
    return it->second;
  }
  Expected<const TileInfo *> getTile(Operation *op, mlir::Type type);
  int64_t getIndex(const std::vector<Operation *> &list, mlir::Value value) const {
    return find(list, value.getDefiningOp()) - list.begin();
  }

  Program &program;
  DenseMap<mlir::Value, unsigned> registers;
  /// The warpgroups of the role that is being compiled.
  int64_t roleWarpgroups = 1;
};

/// A type of tiles is compiled once. Layouts are over the warpgroups of the role, or there are
/// none.
Expected<const TileInfo *> Compiler::getTile(Operation *op, mlir::Type type) {
  RankedTensorType tensor = tile::getTileType(type);
  if (!tensor)
    return makeOpError(op, "expected a tile of rank 1 or 2");
  std::unique_ptr<TileInfo> &info = program.tiles[tensor];
  if (!info) {
    Expected<std::unique_ptr<TileInfo>> made = makeTileInfo(op, tensor, program.threads);
    if (!made)
      return made.takeError();
    info = std::move(*made);
  }
  bool hasLayouts = program.numWarpgroups > 1 || roleWarpgroups > 1 || tensor.getEncoding();
  if (hasLayouts && !tensor.getEncoding())
    return makeOpError(op, "expected every tile to have a layout, or none");
  if (info->warpgroups != roleWarpgroups)
    return makeOpError(op, "expected a layout over the " + Twine(roleWarpgroups) +
                               " warpgroups of the role, got one over " + Twine(info->warpgroups));
  return info.get();
}

//===----------------------------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------------------------===//

Error Compiler::compileBlock(mlir::Block &block) {
  for (Operation &op : block.without_terminator())
    if (Error error = compileOp(op))
      return error;
  return Error::success();
}

Error Compiler::compileFor(mlir::scf::ForOp op) {
  mlir::Block *body = op.getBody();
  addMove(op, op.getLowerBound(), op.getInductionVar());
  addMove(op, op.getInitArgs(), op.getRegionIterArgs());
  unsigned head = here();
  Instruction &test = add(Code::ForTest, op);
  test.in = {getRegister(op.getInductionVar()), getRegister(op.getUpperBound())};
  if (Error error = compileBlock(*body))
    return error;
  addMove(op, body->getTerminator()->getOperands(), op.getRegionIterArgs());
  Instruction &step = add(Code::ForStep, op);
  step.in = {getRegister(op.getInductionVar()), getRegister(op.getStep())};
  step.out = {step.in[0]};
  add(Code::Jump, op).targets = {head};
  program.instructions[head].targets = {here()};
  addMove(op, op.getRegionIterArgs(), op.getResults());
  return Error::success();
}

Error Compiler::compileIf(mlir::scf::IfOp op) {
  unsigned test = here();
  add(Code::JumpIfNot, op).in = {getRegister(op.getCondition())};
  auto branch = [&](mlir::Region &region) -> Error {
    if (region.empty())
      return Error::success();
    if (Error error = compileBlock(region.front()))
      return error;
    addMove(op, region.front().getTerminator()->getOperands(), op.getResults());
    return Error::success();
  };
  if (Error error = branch(op.getThenRegion()))
    return error;
  unsigned jump = here();
  add(Code::Jump, op);
  program.instructions[test].targets = {here()};
  if (Error error = branch(op.getElseRegion()))
    return error;
  program.instructions[jump].targets = {here()};
  return Error::success();
}

Error Compiler::compileWhile(mlir::scf::WhileOp op) {
  addMove(op, op.getInits(), op.getBeforeArguments());
  unsigned head = here();
  if (Error error = compileBlock(*op.getBeforeBody()))
    return error;
  mlir::scf::ConditionOp condition = op.getConditionOp();
  addMove(op, condition.getArgs(), op.getAfterArguments());
  unsigned test = here();
  add(Code::JumpIfNot, op).in = {getRegister(condition.getCondition())};
  if (Error error = compileBlock(*op.getAfterBody()))
    return error;
  addMove(op, op.getYieldOp().getResults(), op.getBeforeArguments());
  add(Code::Jump, op).targets = {head};
  program.instructions[test].targets = {here()};
  addMove(op, op.getAfterArguments(), op.getResults());
  return Error::success();
}

Error Compiler::compileRoles(tile::SpecializeOp op) {
  unsigned dispatch = here();
  add(Code::Roles, op);
  SmallVector<unsigned> starts, jumps;
  for (auto [index, region] : enumerate(op.getRoles())) {
    roleWarpgroups =
        op.getWarpgroups()[index] * (program.machine->warpgroupThreads / program.threads);
    starts.push_back(here());
    if (Error error = compileBlock(region.front()))
      return error;
    jumps.push_back(here());
    add(Code::Jump, op);
  }
  roleWarpgroups = program.numWarpgroups;
  for (unsigned jump : jumps)
    program.instructions[jump].targets = {here()};
  SmallVector<unsigned, 4> &targets = program.instructions[dispatch].targets;
  for (unsigned role : program.roleOf) {
    // In an elected role, one thread of the first warpgroup runs the region.
    bool runs =
        !program.roles[role].isElected || int64_t(targets.size()) == program.roles[role].first;
    targets.push_back(runs ? starts[role] : here());
  }
  add(Code::Rejoin, op);
  return Error::success();
}

Error Compiler::setUpRoles() {
  auto attribute =
      program.kernel->getAttrOfType<tile::KernelAttr>(tile::TileDialect::kKernelAttrName);
  bool hasLayouts = false;
  tile::SpecializeOp specialize;
  program.kernel.walk([&](Operation *op) {
    hasLayouts |= any_of(op->getResultTypes(), [](mlir::Type type) {
      RankedTensorType tensor = tile::getTileType(type);
      return tensor && tensor.getEncoding();
    });
    if (auto roles = mlir::dyn_cast<tile::SpecializeOp>(op))
      specialize = roles;
  });
  // Programs without layouts are the same for any number of warpgroups.
  const Machine &machine = *program.machine;
  // Blocks that only vote have one answer for all of their warps.
  bool multiplies = program.kernel.walk([](tile::MmaOp) { return mlir::WalkResult::interrupt(); })
                        .wasInterrupted();
  program.threads =
      machine.product.isAsync || !multiplies ? machine.warpgroupThreads : machine.product.threads;
  int64_t fibers = machine.warpgroupThreads / program.threads;
  program.numWarpgroups = hasLayouts || specialize ? attribute.getWarpgroups() * fibers : 1;
  program.block.name = "block";
  program.block.warpgroups = roleWarpgroups = program.numWarpgroups;
  program.block.registers =
      machine.getLaunchRegisters(attribute.getWarpgroups(), attribute.getSchedule().resident);
  if (!specialize) {
    program.roles.push_back(program.block);
    program.roleOf.assign(program.numWarpgroups, 0);
    return Error::success();
  }
  int64_t first = 0;
  for (auto [index, warpgroups] : enumerate(specialize.getWarpgroups())) {
    RoleInfo role;
    role.name = mlir::cast<mlir::StringAttr>(specialize.getNames()[index]).str();
    role.first = first;
    role.warpgroups = warpgroups * fibers;
    role.registers = specialize.getRegisters()[index];
    role.isElected = specialize.getElected()[index];
    first += role.warpgroups;
    program.roleOf.append(role.warpgroups, program.roles.size());
    program.roles.push_back(role);
  }
  return Error::success();
}

//===----------------------------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------------------------===//

Error Compiler::compileScalar(Operation &op) {
  for (mlir::Type type : op.getResultTypes())
    if (!type.isIntOrIndexOrFloat())
      return makeOpError(&op, formatv("expected numbers, tiles and memory, got {0}", type).str());
  if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    Expected<RuntimeValue> value = evaluateConstant(constant.getValue(), /*exactConstants=*/false);
    if (!value)
      return makeOpError(&op, value.takeError());
    addWhole(Code::Constant, &op).constant = *value;
    return Error::success();
  }
  auto affine = [&](mlir::AffineMap map, bool isMin, bool isMax) {
    Instruction &instruction = addWhole(Code::Affine, &op);
    instruction.map = map;
    instruction.isMin = isMin;
    instruction.isMax = isMax;
    return Error::success();
  };
  if (auto apply = mlir::dyn_cast<mlir::affine::AffineApplyOp>(op))
    return affine(apply.getAffineMap(), false, false);
  if (auto min = mlir::dyn_cast<mlir::affine::AffineMinOp>(op))
    return affine(min.getAffineMap(), true, false);
  if (auto max = mlir::dyn_cast<mlir::affine::AffineMaxOp>(op))
    return affine(max.getAffineMap(), false, true);
  Expected<ScalarOp> scalar = compileScalarOp(&op);
  if (!scalar)
    return scalar.takeError();
  Instruction &instruction = addWhole(Code::Scalar, &op);
  instruction.scalar = *scalar;
  // A float that is no tile's element type is an f64, which a lane holds as it is.
  instruction.number = getNumber(op.getResult(0).getType()).value_or(Number::Integer);
  return Error::success();
}

static bool isTileType(mlir::Type type) { return mlir::isa<RankedTensorType>(type); }

/// In one piece: a table, a few lines for each op that computes on tiles.
Error Compiler::compileTileOp(Operation &op) {
  bool makesTile = op.getNumResults() && isTileType(op.getResult(0).getType());
  mlir::Type type = makesTile ? op.getResult(0).getType() : op.getOperand(0).getType();
  Expected<const TileInfo *> tile = getTile(&op, type);
  if (!tile)
    return tile.takeError();
  for (mlir::Type operand : op.getOperandTypes())
    if (isTileType(operand))
      if (Expected<const TileInfo *> info = getTile(&op, operand); !info)
        return info.takeError();
  int64_t elements = (*tile)->getLocalRows() * (*tile)->columns;
  auto finish = [&](Instruction &instruction) {
    instruction.tile = *tile;
    instruction.work = getWork(program.machine->costs, &op, elements);
    return Error::success();
  };
  if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    auto splat = mlir::dyn_cast<mlir::SplatElementsAttr>(constant.getValue());
    if (!splat)
      return makeOpError(&op, "expected a constant with equal elements");
    Expected<RuntimeValue> value =
        evaluateConstant(splat.getSplatValue<mlir::Attribute>(), /*exactConstants=*/false);
    if (!value)
      return makeOpError(&op, value.takeError());
    Instruction &instruction = addWhole(Code::TileConstant, &op);
    instruction.constant = *value;
    return finish(instruction);
  }
  if (auto reduce = mlir::dyn_cast<tile::ReduceOp>(op)) {
    auto source = mlir::cast<RankedTensorType>(reduce.getSource().getType());
    elements = (*tile)->getLocalRows() * source.getDimSize(1);
    Instruction &instruction = addWhole(Code::Reduce, &op);
    instruction.isMax = reduce.getCombiner() == tile::Combiner::Max;
    return finish(instruction);
  }
  if (mlir::isa<tile::AnyRowOp>(op)) {
    Instruction &instruction = addWhole(Code::Vote, &op);
    instruction.isMax = true;
    return finish(instruction);
  }
  if (auto vote = mlir::dyn_cast<tile::VoteOp>(op)) {
    Instruction &instruction = addWhole(Code::Vote, &op);
    instruction.isMax = vote.getQuantifier() == tile::Quantifier::Any;
    return finish(instruction);
  }
  if (auto coord = mlir::dyn_cast<tile::CoordOp>(op)) {
    Instruction &instruction = addWhole(Code::Coord, &op);
    instruction.value = coord.getDim();
    return finish(instruction);
  }
  if (auto convert = mlir::dyn_cast<tile::ConvertLayoutOp>(op);
      convert && !tile::isConvertible(mlir::cast<RankedTensorType>(convert.getSource().getType()),
                                      mlir::cast<RankedTensorType>(convert.getType())))
    return makeOpError(&op, "expected layouts that hold the same elements in the same registers");
  std::optional<Code> simple =
      TypeSwitch<Operation *, std::optional<Code>>(&op)
          .Case<tile::SumDiagonalsOp>([](auto) { return Code::SumDiagonals; })
          .Case<tile::BroadcastOp>([](auto) { return Code::Broadcast; })
          .Case<tile::ConvertLayoutOp>([](auto) { return Code::ConvertLayout; })
          .Case<tile::LoadOp>([](auto) { return Code::Load; })
          .Case<tile::GatherOp>([](auto) { return Code::Gather; })
          .Case<tile::LoadColumnsOp>([](auto) { return Code::LoadColumns; })
          .Case<tile::LoadSharedOp>([](auto) { return Code::LoadShared; })
          .Case<tile::LoadTensorOp>([](auto) { return Code::LoadTensor; })
          .Case<tile::StoreTensorOp>([](auto) { return Code::StoreTensor; })
          .Default([](Operation *) { return std::nullopt; });
  if (simple)
    return finish(addWhole(*simple, &op));
  if (auto store = mlir::dyn_cast<tile::StoreOp>(op)) {
    bool isShared = mlir::isa<tile::SharedType>(store.getDest().getType());
    Instruction &instruction = addWhole(isShared ? Code::StoreShared : Code::Store, &op);
    instruction.isAdd = store.getAdd();
    return finish(instruction);
  }
  if (mlir::isa<tile::AddAsyncOp>(op)) {
    Instruction &instruction = addWhole(Code::Store, &op);
    instruction.isAdd = true;
    return finish(instruction);
  }
  if (mlir::isa<tile::ScatterAddOp>(op)) {
    Instruction &instruction = addWhole(Code::ScatterAdd, &op);
    instruction.isAdd = true;
    return finish(instruction);
  }
  if (mlir::isa<tile::MarkReadOp>(op))
    return finish(addWhole(Code::MarkRead, &op));
  Expected<ScalarOp> scalar = compileScalarOp(&op);
  if (!scalar)
    return scalar.takeError();
  Instruction &instruction = addWhole(Code::Elementwise, &op);
  instruction.scalar = *scalar;
  instruction.fast = getFastOp(&op);
  return finish(instruction);
}

Error Compiler::compileProduct(Operation *op, mlir::Value lhs, mlir::Value rhs, mlir::Value acc,
                               mlir::Value kept, RankedTensorType result, bool transposeLhs,
                               bool isAsync) {
  Expected<const TileInfo *> tile = getTile(op, result);
  if (!tile)
    return tile.takeError();
  bool inRegisters = isTileType(rhs.getType());
  if (inRegisters && (result.getEncoding() || !isTileType(lhs.getType())))
    return makeOpError(op, "expected rhs in shared memory");
  auto shape = [](mlir::Type type) {
    auto shared = mlir::dyn_cast<tile::SharedType>(type);
    return shared ? shared.getShape() : mlir::cast<RankedTensorType>(type).getShape();
  };
  const TileInfo *lhsTile = nullptr;
  if (isTileType(lhs.getType())) {
    Expected<const TileInfo *> info = getTile(op, lhs.getType());
    if (!info)
      return info.takeError();
    lhsTile = *info;
  }
  Instruction &product = add(inRegisters ? Code::MmaRegisters : Code::MmaAsync, op);
  product.tile = *tile;
  product.lhsTile = lhsTile;
  product.in = {getRegister(lhs), getRegister(rhs)};
  if (acc)
    product.in.push_back(getRegister(acc));
  product.m = (*tile)->getLocalRows();
  product.n = (*tile)->columns;
  product.k = shape(lhs.getType())[transposeLhs ? 0 : 1];
  if (kept) {
    product.kept = mlir::cast<RankedTensorType>(kept.getType()).getDimSize(1);
    product.keptRegister = getRegister(kept);
  }
  product.isMin = transposeLhs;
  product.isMax = op->hasAttr("transpose_rhs");
  mlir::Type element = mlir::isa<tile::SharedType>(rhs.getType())
                           ? mlir::cast<tile::SharedType>(rhs.getType()).getElementType()
                           : mlir::cast<RankedTensorType>(rhs.getType()).getElementType();
  product.value = element.getIntOrFloatBitWidth();
  product.out = {getRegister(op->getResult(0))};
  if (inRegisters || isAsync)
    return Error::success();
  // A synchronous product is one that is waited for at once.
  add(Code::MmaCommit, op);
  Instruction &wait = add(Code::MmaWait, op);
  wait.in = wait.out = {getRegister(op->getResult(0))};
  return Error::success();
}

Error Compiler::compileTensorProduct(tile::MmaTensorOp op) {
  Instruction &product = addWhole(Code::MmaTensor, op);
  auto lhs = mlir::dyn_cast<tile::SharedType>(op.getLhs().getType());
  int64_t depth = lhs ? lhs.getShape()[op.getTransposeLhs() ? 0 : 1]
                      : mlir::cast<tile::TensorPlaceType>(op.getLhs().getType()).getNumColumns();
  product.m = program.machine->product.rows;
  product.n = op.getSum().getType().getNumColumns();
  product.k = depth;
  product.isMin = op.getTransposeLhs();
  product.isMax = op.getTransposeRhs();
  product.isAdd = op.getAdd();
  product.value = op.getRhs().getType().getElementBytes() * 8;
  return Error::success();
}

/// In one piece: a table, with a few lines for each op that starts asynchronous work or waits for
/// it.
Error Compiler::compileAsyncOp(Operation &op, bool &isKnown) {
  isKnown = true;
  if (auto product = mlir::dyn_cast<tile::MmaOp>(op))
    return compileProduct(&op, product.getLhs(), product.getRhs(), product.getAcc(),
                          product.getKept(), mlir::cast<RankedTensorType>(product.getType()),
                          product.getTransposeLhs(), /*isAsync=*/false);
  if (auto product = mlir::dyn_cast<tile::MmaAsyncOp>(op))
    return compileProduct(&op, product.getLhs(), product.getRhs(), product.getAcc(),
                          product.getKept(),
                          mlir::cast<tile::InFlightType>(product.getType()).getTile(),
                          product.getTransposeLhs(), /*isAsync=*/true);
  if (auto product = mlir::dyn_cast<tile::MmaTensorOp>(op))
    return compileTensorProduct(product);
  if (auto place = mlir::dyn_cast<tile::TensorPlaceOp>(op)) {
    addWhole(Code::TensorPlace, &op).value = getIndex(program.tensorPlaces, place.getResult());
    return Error::success();
  }
  if (auto scaling = mlir::dyn_cast<tile::ScaleTensorOp>(op)) {
    Expected<const TileInfo *> factors = getTile(&op, scaling.getFactors().getType());
    if (!factors)
      return factors.takeError();
    addWhole(Code::ScaleTensor, &op).tile = *factors;
    return Error::success();
  }
  if (auto alloc = mlir::dyn_cast<tile::AllocSharedOp>(op)) {
    tile::SharedType type = alloc.getType();
    if (type.getNumRows() > kMaxTileElements / type.getNumColumns() / type.getStages())
      return makeOpError(&op, "expected a place of at most " + Twine(kMaxTileElements) +
                                  " elements, got " + Twine(type.getStages()) + "x" +
                                  Twine(type.getNumRows()) + "x" + Twine(type.getNumColumns()));
    addWhole(Code::AllocShared, &op).value = getIndex(program.places, alloc.getResult());
    return Error::success();
  }
  if (auto init = mlir::dyn_cast<tile::BarrierInitOp>(op)) {
    Instruction &instruction = addWhole(Code::BarrierInit, &op);
    instruction.value = getIndex(program.barriers, init.getResult());
    instruction.k = init.getArrivals();
    return Error::success();
  }
  if (auto expect = mlir::dyn_cast<tile::BarrierExpectOp>(op)) {
    addWhole(Code::Expect, &op).value = expect.getBytes();
    return Error::success();
  }
  if (auto wait = mlir::dyn_cast<tile::BarrierWaitOp>(op)) {
    addWhole(Code::Wait, &op).value = wait.getPrevious();
    return Error::success();
  }
  if (auto barrier = mlir::dyn_cast<tile::NamedBarrierOp>(op)) {
    Instruction &instruction = addWhole(Code::NamedBarrier, &op);
    instruction.value = barrier.getThreads();
    instruction.isMin = barrier.getArrive();
    return Error::success();
  }
  if (auto wait = mlir::dyn_cast<tile::MmaWaitOp>(op)) {
    addWhole(Code::MmaWait, &op).value = wait.getPending();
    return Error::success();
  }
  if (auto clearing = mlir::dyn_cast<tile::ClearUnreadOp>(op)) {
    bool isOfMarks = clearing.getBy() && mlir::isa<tile::SharedType>(clearing.getBy().getType());
    if (!(isOfMarks || clearing.getFrom()) || clearing.getCondition() || clearing.getResult())
      return makeOpError(&op, "expected a shared tile, marks of what is read or a first row to "
                              "clear, and no condition, as tile-make-rings makes them");
    addWhole(Code::ClearUnread, &op);
    return Error::success();
  }
  if (mlir::isa<tile::CopyOp>(op)) {
    // All threads meet, write, fence, and meet again.
    add(Code::Sync, &op);
    addWhole(Code::CopyThreads, &op);
    add(Code::Fence, &op);
    add(Code::Sync, &op);
    return Error::success();
  }
  if (auto arrive = mlir::dyn_cast<tile::BarrierArriveOp>(op)) {
    addWhole(Code::Arrive, &op).isMin = arrive.getEach();
    return Error::success();
  }
  std::optional<Code> code =
      TypeSwitch<Operation *, std::optional<Code>>(&op)
          .Case<tile::SlotOp>([](auto) { return Code::Slot; })
          .Case<tile::NextOp>([](auto) { return Code::Next; })
          .Case<tile::UnitSlotOp>([](auto) { return Code::UnitSlot; })
          .Case<tile::NextPhaseOp>([](auto) { return Code::NextPhase; })
          .Case<tile::AllocTensorOp>([](auto) { return Code::AllocTensor; })
          .Case<tile::DeallocTensorOp>([](auto) { return Code::DeallocTensor; })
          .Case<tile::StageOp>([](auto) { return Code::Stage; })
          .Case<tile::SyncOp>([](auto) { return Code::Sync; })
          .Case<tile::FenceOp>([](auto) { return Code::Fence; })
          .Case<tile::CopyAsyncOp>([](auto) { return Code::CopyAsync; })
          .Case<tile::TransposeOp>([](auto) { return Code::Transpose; })
          .Case<tile::FindRowsOp>([](auto) { return Code::FindRows; })
          .Case<tile::GatherAsyncOp>([](auto) { return Code::GatherAsync; })
          .Case<tile::ArriveLandedOp>([](auto) { return Code::ArriveLanded; })
          .Case<tile::CopyShareOp>([](auto) { return Code::CopyShare; })
          .Case<tile::CopyWaitOp>([](auto) { return Code::CopyWait; })
          .Case<tile::StoreAsyncOp>([](auto) { return Code::StoreAsync; })
          .Case<tile::StoreWaitOp>([](auto) { return Code::StoreWait; })
          .Case<tile::MmaCommitOp>([](auto) { return Code::MmaCommit; })
          .Case<tile::WarpgroupOp>([](auto) { return Code::Warpgroup; })
          .Default([](Operation *) { return std::nullopt; });
  isKnown = code.has_value();
  if (code)
    addWhole(*code, &op);
  return Error::success();
}

Error Compiler::compileOp(Operation &op) {
  if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op))
    return compileFor(loop);
  if (auto branch = mlir::dyn_cast<mlir::scf::IfOp>(op))
    return compileIf(branch);
  if (auto loop = mlir::dyn_cast<mlir::scf::WhileOp>(op))
    return compileWhile(loop);
  if (auto roles = mlir::dyn_cast<tile::SpecializeOp>(op))
    return compileRoles(roles);
  bool isKnown = false;
  if (Error error = compileAsyncOp(op, isKnown))
    return error;
  if (isKnown)
    return Error::success();
  if (auto id = mlir::dyn_cast<mlir::gpu::BlockIdOp>(op)) {
    addWhole(Code::BlockId, &op).value = int64_t(id.getDimension());
    return Error::success();
  }
  if (auto extent = mlir::dyn_cast<mlir::gpu::GridDimOp>(op)) {
    addWhole(Code::GridDim, &op).value = int64_t(extent.getDimension());
    return Error::success();
  }
  if (mlir::isa<mlir::memref::DimOp>(op)) {
    addWhole(Code::Dim, &op);
    return Error::success();
  }
  if (mlir::isa<mlir::memref::StoreOp>(op)) {
    addWhole(Code::StoreScalar, &op);
    return Error::success();
  }
  if (auto load = mlir::dyn_cast<mlir::memref::LoadOp>(op)) {
    addWhole(Code::LoadScalar, &op);
    return Error::success();
  }
  if (any_of(op.getResultTypes(), isTileType) || any_of(op.getOperandTypes(), isTileType))
    return compileTileOp(op);
  return compileScalar(op);
}

Error Compiler::run() {
  mlir::func::FuncOp kernel = program.kernel;
  if (!kernel->getAttrOfType<tile::KernelAttr>(tile::TileDialect::kKernelAttrName) ||
      !kernel.getBody().hasOneBlock())
    return makeOpError(kernel, "expected a kernel (tile.kernel) with a body of one block");
  // A place that is not allocated yet lies beyond all memory, where it overlaps with nothing.
  int64_t apart = int64_t(1) << 32;
  kernel.walk([&](tile::AllocSharedOp op) {
    program.places.push_back(op);
    program.placeOffsets.push_back(op.getOffset() ? int64_t(*op.getOffset()) : apart);
    apart += mlir::cast<tile::SharedType>(op.getType()).getSizeInBytes();
  });
  kernel.walk([&](tile::BarrierInitOp op) { program.barriers.push_back(op); });
  kernel.walk([&](tile::TensorPlaceOp op) { program.tensorPlaces.push_back(op); });
  if (Error error = setUpRoles())
    return error;
  for (mlir::Value argument : kernel.getArguments()) {
    mlir::Type type = argument.getType();
    if (!type.isIntOrIndexOrFloat() && !mlir::isa<mlir::MemRefType>(type))
      return makeOpError(
          kernel,
          formatv("expected memory and numbers as arguments of a kernel, got {0}", type).str());
    program.arguments.push_back(getRegister(argument));
  }
  if (Error error = compileBlock(kernel.getBody().front()))
    return error;
  add(Code::End, kernel);
  return Error::success();
}

Expected<Program> Program::compile(mlir::func::FuncOp kernel) {
  Program program;
  program.kernel = kernel;
  program.machine = &plan::getMachine(kernel);
  if (Error error = Compiler(program).run())
    return std::move(error);
  return std::move(program);
}

} // namespace attn::sim
