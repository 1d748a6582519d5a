//===- Rooms.h - the rooms of the compiler, and the doors between them ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ROOMS_ROOMS_H
#define ATTN_LIB_ROOMS_ROOMS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace attn {

/// Where a program is on its way down. Each device has eight rooms; the first three are shared.
enum class Room {
  Problem,
  Grid,
  Online,
  Tile,
  Placed,
  Async,
  Thread,
  PTX,
  Buffers,
  Vectors,
  LLVM,
  LLVMIR,
  Assembly
};

enum class RoomDevice { Both, CUDA, CPU };

/// The fault of an op, as `expected .., got ..`; empty: none.
using Complaint = std::string;

/// A room is the ops that may stand in it, and the conditions that hold when a program leaves it. A
/// pass that does a part of a room's work keeps to the former; the last one makes the latter true.
struct RoomInfo {
  Room room;
  /// From 1 to 8 for each device.
  unsigned number;
  llvm::StringLiteral name;
  RoomDevice device;
  /// Describes a program in the room.
  llvm::StringLiteral sentence;
  /// The dialects whose ops may stand in it; none: the room holds text.
  llvm::ArrayRef<llvm::StringLiteral> dialects;
  /// Complains about an op that may not stand in the room though its dialect may.
  Complaint (*refuse)(mlir::Operation *op);
  /// Complains about an op that does not yet meet the demands of the room.
  Complaint (*demand)(mlir::Operation *op);

  bool isText() const { return dialects.empty(); }
  bool isOnTheWayTo(RoomDevice wanted) const {
    return device == RoomDevice::Both || device == wanted;
  }
};

/// All rooms, in the order of the enum.
llvm::ArrayRef<RoomInfo> getRooms();
const RoomInfo &getInfo(Room room);
std::optional<Room> symbolizeRoom(llvm::StringRef name);

/// The names of a device's rooms up to a number: `problem, grid or online`.
std::string listRooms(RoomDevice device, unsigned last = 8);

/// `room 4 'tile'`.
std::string describe(Room room);

/// Succeeds if and only if everything below `root` belongs to the room; otherwise reports the first
/// op that does not.
mlir::LogicalResult verifyRoom(mlir::Operation *root, Room room);

/// The room that `root` belongs to: of several, the one of the fewest dialects.
std::optional<Room> findRoom(mlir::Operation *root);

/// The programs that a pass takes or leaves: programs of one room, programs of any room from one to
/// another, or programs that only keep to the ops that may stand in the room.
struct Door {
  constexpr Door(Room room) : first(room), last(room), isPart(false) {}
  constexpr Door(Room first, Room last, bool isPart) : first(first), last(last), isPart(isPart) {}

  Room first, last;
  bool isPart;
};

constexpr Door anyOf(Room first, Room last) { return {first, last, false}; }
constexpr Door within(Room room) { return {room, room, true}; }

/// Succeeds if and only if `root` fits the door; otherwise an error says which room `pass` expected
/// and which it got, with a note at the first op that shows it.
mlir::LogicalResult checkDoor(mlir::Operation *root, llvm::StringRef pass, const Door &door);

} // namespace attn

#endif // ATTN_LIB_ROOMS_ROOMS_H
