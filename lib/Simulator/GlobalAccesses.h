//===- GlobalAccesses.h - the blocks that accessed each element of global memory --------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Every element of an argument that the kernel writes remembers its last write, and who added to it
// or read it since. A new access is checked against those that it conflicts with: each must be
// known to the block that makes the new access (Clock.h). Components of different blocks are
// different, and nothing passes knowledge from one block to another before the kernel ends. So
// blocks must keep to elements of their own, to reads, or to additions, which hardware makes one
// after the other.
//
// Threads of one warpgroup are taken to access the same elements each time.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_GLOBALACCESSES_H
#define ATTN_LIB_SIMULATOR_GLOBALACCESSES_H

#include "lib/Simulator/Clock.h"
#include "lib/Simulator/Simulator.h"
#include <array>

namespace attn::sim {

class GlobalAccesses {
public:
  enum class Kind : uint8_t { Read, Write, Add };

  /// By whom, and how others of the block learn that it is over.
  struct Access {
    Kind kind;
    mlir::Operation *op;
    std::array<int64_t, 3> block;
    unsigned fiber;
    llvm::SmallVector<Epoch, 2> epochs;
    /// Asynchronous hardware does it: the fiber itself does not know either.
    bool isAsync = false;
  };

  /// Of a run of a kernel.
  GlobalAccesses(const Program &program, llvm::ArrayRef<Argument> arguments);

  /// Whether anybody writes the argument, so that there is something to remember.
  bool isTracked(unsigned argument) const { return !rows[argument].empty(); }
  /// Whether blocks can see the accesses of other blocks while they run.
  bool isShared() const { return shared; }

  /// Begins an access by `agents`, whose elements follow.
  void begin(Access access, llvm::ArrayRef<Agent *> agents) {
    accesses.push_back(std::move(access));
    last = {};
    this->agents.assign(agents.begin(), agents.end());
  }
  /// The access touches columns [begin, end) of a row, that is, of all along the last dimension;
  /// rows are counted in row-major order.
  std::optional<Finding> touch(unsigned argument, int64_t row, int64_t begin, int64_t end);

private:
  /// Links of `links`; 0 is none.
  struct Cell {
    uint32_t write = 0, adds = 0, reads = 0;
    bool operator==(const Cell &other) const {
      return write == other.write && adds == other.adds && reads == other.reads;
    }
  };
  struct Link {
    uint32_t access, previous;
  };
  /// All of its elements are alike, until an access touches some.
  struct Row {
    Cell all;
    std::vector<Cell> elements;
  };

  std::optional<Finding> touch(Cell &cell, unsigned argument, int64_t element);
  std::optional<Finding> check(uint32_t link, unsigned argument, int64_t element) const;
  uint32_t link(uint32_t previous);

  llvm::SmallVector<llvm::SmallVector<int64_t, 5>> shapes;
  std::vector<std::vector<Row>> rows;
  std::vector<Access> accesses;
  std::vector<Link> links{{0, 0}};
  bool shared = false;
  /// Of the access.
  llvm::SmallVector<const Agent *, 2> agents;
  /// The last cell before and after the access: its neighbours are mostly alike.
  std::optional<std::pair<Cell, Cell>> last;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_GLOBALACCESSES_H
