//===- VerifyRoom.cpp - which room a program is in, and attn-verify-room ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Rooms/Passes.h"
#include "lib/Rooms/Rooms.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {
#define GEN_PASS_DEF_VERIFYROOMPASS
#include "lib/Rooms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// The first op that does not belong to a room, and why.
struct Misfit {
  Operation *op = nullptr;
  Complaint why;
};
} // namespace

static Complaint complain(Operation *op, const RoomInfo &info, bool isPart) {
  auto function = dyn_cast<func::FuncOp>(op);
  bool isEverywhere = isa<ModuleOp>(op) || (function && function.isExternal());
  StringRef dialect = op->getName().getDialectNamespace();
  if (!isEverywhere && !llvm::is_contained(info.dialects, dialect))
    return "expected ops of " + llvm::join(info.dialects, ", ") + ", got one of " + dialect.str();
  assert(op->getDialect() && "parsing an op loads its dialect");
  if (info.refuse)
    if (Complaint complaint = info.refuse(op); !complaint.empty())
      return complaint;
  return info.demand && !isPart ? info.demand(op) : Complaint();
}

static Misfit findMisfit(Operation *root, const RoomInfo &info, bool isPart) {
  assert(!info.isText() && "text is no IR");
  Misfit found;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    found.why = complain(op, info, isPart);
    if (found.why.empty())
      return WalkResult::advance();
    found.op = op;
    return WalkResult::interrupt();
  });
  return found;
}

std::optional<Room> attn::findRoom(Operation *root) {
  const RoomInfo *narrowest = nullptr;
  for (const RoomInfo &info : getRooms())
    if (!info.isText() && !findMisfit(root, info, /*isPart=*/false).op)
      if (!narrowest || info.dialects.size() < narrowest->dialects.size())
        narrowest = &info;
  return narrowest ? std::optional(narrowest->room) : std::nullopt;
}

LogicalResult attn::verifyRoom(Operation *root, Room room) {
  Misfit misfit = findMisfit(root, getInfo(room), /*isPart=*/false);
  if (!misfit.op)
    return success();
  return misfit.op->emitOpError("in ") << describe(room) << ": " << misfit.why;
}

LogicalResult attn::checkDoor(Operation *root, StringRef pass, const Door &door) {
  Misfit first;
  for (const RoomInfo &info : getRooms()) {
    if (info.room < door.first || info.room > door.last || info.isText())
      continue;
    Misfit misfit = findMisfit(root, info, door.isPart);
    if (!misfit.op)
      return success();
    if (!first.op)
      first = std::move(misfit);
  }
  std::optional<Room> actual = findRoom(root);
  InFlightDiagnostic error = emitError(first.op->getLoc());
  error << pass << ": expected " << (door.isPart ? "a part of " : "") << describe(door.first);
  if (door.last != door.first)
    error << " to " << describe(door.last);
  error << ", got " << (actual ? describe(*actual) : "a program of no room");
  error.attachNote(first.op->getLoc())
      << "'" << first.op->getName() << "' in " << describe(door.first) << ": " << first.why;
  return error;
}

namespace {
struct VerifyRoomPass : attn::impl::VerifyRoomPassBase<VerifyRoomPass> {
  using Base::Base;
  void runOnOperation() override {
    std::optional<Room> wanted = symbolizeRoom(room);
    if (!wanted || getInfo(*wanted).isText()) {
      InFlightDiagnostic error = getOperation()->emitError("expected room ");
      llvm::interleaveComma(
          llvm::make_filter_range(getRooms(), [](const RoomInfo &info) { return !info.isText(); }),
          error, [&](const RoomInfo &info) { error << info.name; });
      error << ", got '" << room << "'";
      return signalPassFailure();
    }
    if (failed(verifyRoom(getOperation(), *wanted)))
      signalPassFailure();
  }
};
} // namespace
