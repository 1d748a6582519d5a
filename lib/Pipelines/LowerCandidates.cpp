//===- LowerCandidates.cpp - lets the rule count registers of what it chooses -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Pipelines/LowerCandidates.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Analysis/Registers/CountRegisters.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Transforms/Attn/CandidateRegisters.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------------------------===//
// One op of a function
//===----------------------------------------------------------------------------------------===//

static bool isKernel(Operation *op) {
  return isa<AttentionOp, RowDeltaOp, AttentionGradDeltaOp, AttentionGradQueryOp,
             AttentionGradKeyValueOp>(op);
}

/// Adds the ops that `op` reads its operands by, up to those that become kernels of their own.
static void addProducers(Operation *op, SetVector<Operation *> &producers) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  for (Value value : used)
    if (Operation *made = value.getDefiningOp();
        made && isPure(made) && !isKernel(made) && !producers.contains(made)) {
      addProducers(made, producers);
      producers.insert(made);
    }
}

/// A module with a function of its own for an op. Values that it takes from kernels are arguments.
static OwningOpRef<ModuleOp> isolate(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  SetVector<Operation *> ops;
  addProducers(op, ops);
  ops.insert(op);
  SetVector<Value> arguments(function.getArguments().begin(), function.getArguments().end());
  for (Operation *each : ops) {
    SetVector<Value> used(each->operand_begin(), each->operand_end());
    getUsedValuesDefinedAbove(each->getRegions(), used);
    for (Value value : used)
      if (!ops.contains(value.getDefiningOp()))
        arguments.insert(value);
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(op->getLoc());
  (*module)->setAttrs(op->getParentOfType<ModuleOp>()->getDiscardableAttrDictionary());
  OpBuilder b(module->getBodyRegion());
  auto types = llvm::map_to_vector(arguments, [](Value value) { return value.getType(); });
  auto copy = func::FuncOp::create(b, op->getLoc(), function.getName(),
                                   b.getFunctionType(types, op->getResultTypes()));
  copy->setDiscardableAttrs(function->getDiscardableAttrDictionary());
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    copy.setArgAttrs(index, function.getArgAttrDict(index));
  Block *body = copy.addEntryBlock();
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip_equal(arguments, body->getArguments()))
    mapping.map(value, argument);
  b.setInsertionPointToStart(body);
  Operation *last = nullptr;
  for (Operation *each : ops)
    last = b.clone(*each, mapping);
  func::ReturnOp::create(b, op->getLoc(), last->getResults());
  return module;
}

//===----------------------------------------------------------------------------------------===//
// Its kernel
//===----------------------------------------------------------------------------------------===//

namespace {
/// Candidates are lowered in a context of their own: what passes remark or complain about there is
/// nobody's business.
class Lowering : public CandidateRegisters {
public:
  explicit Lowering(const DialectRegistry &registry)
      : context(registry, MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  }

  std::optional<int64_t> countSpare(Operation *op, const Schedule &schedule) override {
    OwningOpRef<ModuleOp> candidate = isolate(op);
    candidate->walk([&](Operation *inner) {
      if (isKernel(inner))
        inner->setAttr(kScheduleAttrName, ScheduleAttr::get(op->getContext(), schedule));
    });
    std::string text;
    llvm::raw_string_ostream(text) << *candidate;
    auto [it, isNew] = known.try_emplace(text);
    if (isNew)
      it->second = lower(text);
    return it->second;
  }

private:
  std::optional<int64_t> lower(StringRef text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    PipelineOptions options;
    options.target = "cuda";
    PassManager passes(&context);
    passes.enableVerifier(false);
    buildPipeline(passes, options, Room::Grid, Room::Async);
    if (!module || failed(passes.run(*module)))
      return std::nullopt;
    std::optional<int64_t> least;
    for (auto kernel : module->getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(tile::TileDialect::kKernelAttrName))
        continue;
      for (tile::RoleCount role : tile::countRegisters(kernel))
        if (int64_t taken = role.taken.registers; taken > 0)
          least = std::min(least.value_or(role.budget), role.budget - taken);
    }
    return least;
  }

  MLIRContext context;
  llvm::StringMap<std::optional<int64_t>> known;
};

struct LowerCandidates : CandidateInterface {
  using CandidateInterface::CandidateInterface;

  std::unique_ptr<CandidateRegisters> makeRegisters() const override {
    return std::make_unique<Lowering>(getContext()->getDialectRegistry());
  }
};
} // namespace

void attn::registerCandidates(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, AttnDialect *dialect) { dialect->addInterfaces<LowerCandidates>(); });
}
