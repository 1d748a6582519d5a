//===- Rooms.cpp - the table of the rooms -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Rooms/Rooms.h"
#include "lib/Rooms/Predicates.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace attn;

static constexpr StringLiteral kTensors[] = {"func",   "tensor", "arith", "math",
                                             "linalg", "affine", "attn"};
// A caller's buffer takes a result by a `bufferization` op.
static constexpr StringLiteral kBlocks[] = {"func",   "tensor", "arith", "math",         "linalg",
                                            "affine", "attn",   "scf",   "bufferization"};
static constexpr StringLiteral kTiles[] = {"func", "tile",   "arith",  "math",
                                           "scf",  "memref", "affine", "gpu"};
// Scalars of tiles, and blocks of a role, which tile-outline-roles refuses where they decide.
static constexpr StringLiteral kRoles[] = {"func",   "tile",   "arith", "math",   "scf",
                                           "memref", "affine", "gpu",   "tensor", "cf"};
static constexpr StringLiteral kThread[] = {"llvm", "nvvm"};
static constexpr StringLiteral kBuffers[] = {"func",   "memref", "arith", "math",          "linalg",
                                             "affine", "attn",   "scf",   "bufferization", "ub"};
// Casts from a buffer to the pointer that a function of the pool takes are `builtin` ops.
static constexpr StringLiteral kVectors[] = {"func",   "memref", "arith",  "math",
                                             "affine", "scf",    "vector", "x86vector",
                                             "llvm",   "ub",     "builtin"};
static constexpr StringLiteral kLLVM[] = {"llvm"};

static constexpr RoomInfo kRooms[] = {
    {Room::Problem, 1, "problem", RoomDevice::Both,
     "whole tensors, variants expanded, schedule chosen", kTensors, refuseInProblem, nullptr},
    {Room::Grid, 2, "grid", RoomDevice::Both, "one grid of blocks", kBlocks, refuseInGrid,
     demandOfGrid},
    {Room::Online, 3, "online", RoomDevice::Both, "the online softmax over key tiles", kBlocks,
     refuseInOnline, nullptr},
    {Room::Tile, 4, "tile", RoomDevice::CUDA, "the program of one thread block", kTiles,
     refuseInTile, demandOfTile},
    {Room::Placed, 5, "placed", RoomDevice::CUDA, "a place and a layout for every tile", kTiles,
     refuseInPlaced, demandOfPlaced},
    {Room::Async, 6, "async", RoomDevice::CUDA, "copies in flight, roles and barriers", kRoles,
     refuseInAsync, demandOfAsync},
    {Room::Thread, 7, "thread", RoomDevice::CUDA, "the program of one thread", kThread, nullptr,
     demandOfThread},
    {Room::PTX,
     8,
     "ptx",
     RoomDevice::CUDA,
     "the text that the driver assembles",
     {},
     nullptr,
     nullptr},
    {Room::Buffers, 4, "buffers", RoomDevice::CPU, "every tensor is a buffer", kBuffers,
     refuseTensors, nullptr},
    {Room::Vectors, 5, "vectors", RoomDevice::CPU, "loops over vectors", kVectors, refuseTensors,
     nullptr},
    {Room::LLVM, 6, "llvm", RoomDevice::CPU, "the LLVM dialect", kLLVM, nullptr, nullptr},
    {Room::LLVMIR, 7, "llvm-ir", RoomDevice::CPU, "optimised LLVM IR", {}, nullptr, nullptr},
    {Room::Assembly, 8, "asm", RoomDevice::CPU, "assembly", {}, nullptr, nullptr}};

ArrayRef<RoomInfo> attn::getRooms() { return kRooms; }

const RoomInfo &attn::getInfo(Room room) { return kRooms[static_cast<size_t>(room)]; }

std::optional<Room> attn::symbolizeRoom(StringRef name) {
  for (const RoomInfo &info : kRooms)
    if (info.name == name)
      return info.room;
  return std::nullopt;
}

std::string attn::listRooms(RoomDevice device, unsigned last) {
  SmallVector<StringRef> names;
  for (const RoomInfo &info : kRooms)
    if (info.isOnTheWayTo(device) && info.number <= last)
      names.push_back(info.name);
  StringRef end = names.pop_back_val();
  return join(names, ", ") + " or " + end.str();
}

std::string attn::describe(Room room) {
  const RoomInfo &info = getInfo(room);
  return ("room " + Twine(info.number) + " '" + info.name + "'").str();
}
