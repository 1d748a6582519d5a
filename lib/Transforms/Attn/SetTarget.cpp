//===- SetTarget.cpp - attn-set-target ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"

namespace attn {
#define GEN_PASS_DEF_SETTARGETPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
struct SetTargetPass
    : RoomPass<attn::impl::SetTargetPassBase<SetTargetPass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;

  LogicalResult transform() override {
    ModuleOp module = getOperation();
    StringRef name = plan::PlanDialect::kTargetAttrName;
    auto before = module->getAttrOfType<plan::TargetAttr>(name);
    const Machine *machine = target == "cuda" ? &plan::getMachine(module) : findMachine(target);
    if (!machine)
      return module.emitError("expected the target cpu, cuda or ")
             << listMachines() << ", got '" << target << "'";
    if (before && before.getName() != machine->name)
      return module.emitError("expected the target ")
             << before.getName() << " of the program, got " << machine->name;
    module->setAttr(name, plan::TargetAttr::get(&getContext(), machine->name));
    return success();
  }
};
} // namespace
