//===- VisitDoor.cpp - looking at a module on its way through the rooms -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Pipelines/VisitDoor.h"

using namespace mlir;
using namespace attn;

namespace {
/// Not registered: a function has no spelling in a textual pipeline.
struct VisitDoorPass : PassWrapper<VisitDoorPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VisitDoorPass)

  VisitDoorPass(StringRef room, DoorVisitor visit) : room(room), visit(std::move(visit)) {}

  void runOnOperation() override {
    visit(room, getOperation());
    markAllAnalysesPreserved();
  }

  std::string room;
  DoorVisitor visit;
};
} // namespace

void attn::addVisit(OpPassManager &pm, StringRef room, const DoorVisitor &visit) {
  if (visit)
    pm.addPass(std::make_unique<VisitDoorPass>(room, visit));
}
