//===- SharedMemory.h - the tiles of one block in memory on chip ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Every stage of every place keeps its numbers, which of its rows have been written, and who
// accessed it since the last write. An access is checked against those that it conflicts with: each
// must be known to the party that makes the new access (Clock.h).
//
// Tensor memory is the same, with two rules of its own: each thread of a warpgroup has its own
// rows, so that the threads need not meet between their accesses, and no proxy needs a fence.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_SHAREDMEMORY_H
#define ATTN_LIB_SIMULATOR_SHAREDMEMORY_H

#include "lib/Simulator/Clock.h"
#include "lib/Simulator/Finding.h"
#include "lib/Simulator/TileMath.h"
#include "llvm/ADT/BitVector.h"
#include <optional>

namespace attn::sim {

/// Part of a tile.
struct Rect {
  int64_t rowBegin, rowEnd, columnBegin, columnEnd;

  bool intersects(const Rect &other) const {
    return rowBegin < other.rowEnd && other.rowBegin < rowEnd && columnBegin < other.columnEnd &&
           other.columnBegin < columnEnd;
  }
  bool contains(const Rect &other) const {
    return rowBegin <= other.rowBegin && other.rowEnd <= rowEnd &&
           columnBegin <= other.columnBegin && other.columnEnd <= columnEnd;
  }
};

/// One access, and how others learn that it is over.
struct Access {
  enum class Kind {
    ThreadWrite,
    ThreadRead,
    SumWrite,
    WeightRead,
    GatherWrite,
    CopyWrite,
    ProductRead,
    StoreRead
  };
  Kind kind;
  Rect rect;
  llvm::SmallVector<Epoch, 2> epochs;
  mlir::Operation *op;
  /// Whose op it is.
  unsigned fiber;

  /// Through the asynchronous proxy.
  bool isAsync() const { return kind > Kind::GatherWrite; }
  bool isWrite() const {
    return kind == Kind::ThreadWrite || kind == Kind::SumWrite || kind == Kind::GatherWrite ||
           kind == Kind::CopyWrite;
  }
  bool isOfThreads() const { return kind == Kind::ThreadWrite || kind == Kind::ThreadRead; }
};

struct Stage {
  /// Row-major, without swizzle and padding; empty when numbers are off.
  std::vector<float> data;
  llvm::BitVector written;
  llvm::SmallVector<Access, 4> writes, reads;
};

/// A tile or ring.
struct Place {
  mlir::Operation *op = nullptr;
  int64_t rows = 0, columns = 0, offset = 0, stageBytes = 0;
  Number number = Number::F32;
  std::vector<Stage> stages;

  Rect getWhole() const { return {0, rows, 0, columns}; }
};

class SharedMemory {
public:
  explicit SharedMemory(bool isTensorMemory = false) : isTensorMemory(isTensorMemory) {}

  /// Adds a place; its index is the number of places so far.
  void add(Place place, bool withNumbers);
  void clear() { places.clear(); }

  Place &getPlace(unsigned index) { return places[index]; }
  Stage &getStage(unsigned place, unsigned stage) { return places[place].stages[stage]; }

  /// Checks an access by `agents` and remembers it.
  std::optional<Finding> access(unsigned place, unsigned stage, Access access,
                                llvm::ArrayRef<const Agent *> agents);

private:
  std::optional<Finding> checkAgainst(const Access &past, const Access &access,
                                      llvm::ArrayRef<const Agent *> agents, const Place &place,
                                      unsigned stage);
  std::optional<Finding> checkAliases(unsigned place, unsigned stage, const Access &access,
                                      llvm::ArrayRef<const Agent *> agents);

  std::string describeStage(const Place &place, unsigned stage) const;

  bool isTensorMemory;
  std::vector<Place> places;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_SHAREDMEMORY_H
