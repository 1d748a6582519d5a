//===- Simulator.h - runs kernels of rooms 4 to 6 without a GPU -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_SIMULATOR_H
#define ATTN_LIB_SIMULATOR_SIMULATOR_H

#include "lib/Interpreter/Value.h"
#include "lib/Simulator/CostModel.h"
#include "lib/Simulator/Finding.h"
#include "lib/Simulator/Timeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <array>
#include <optional>

namespace attn::sim {

/// The global memory that an argument of a kernel names. Without data, tiles read from it are
/// unknown and stores to it are dropped.
struct Memory {
  ElementKind kind = ElementKind::F32;
  char *data = nullptr;
  llvm::SmallVector<int64_t, 5> shape, strides;

  /// Of a packed argument (plan.packed), whose shape is that of its view: row m * slots + j of key
  /// head k is row m of head k * group + j. The stride of its rows is a head's row's.
  struct Packed {
    int64_t slots, group, headStride, heads;
  };
  std::optional<Packed> packed = std::nullopt;

  /// Of a pool of pages (plan.paged), whose shape is that of its view: row n of a batch is row n
  /// mod `page` of the page that the table says, of `pages`. The stride of batches is 0.
  struct Paged {
    /// Of an argument, which outlives this one.
    const Memory *table;
    int64_t page, pages, pageStride;
  };
  std::optional<Paged> paged = std::nullopt;

  /// Of rows of sequences (plan.ragged), whose shape is that of its view: row m of a batch is `m`
  /// rows after the one where its sequence begins, of `total`. The stride of batches is 0.
  struct Ragged {
    /// Of an argument, which outlives this one.
    const Memory *offsets;
    int64_t total, most;
  };
  std::optional<Ragged> ragged = std::nullopt;

  /// The size of a dimension of the argument itself, as memref.dim says it.
  int64_t getSize(size_t dim) const {
    if (ragged)
      return dim == 0 ? ragged->total : dim > 1 ? shape[3] : packed ? packed->heads : shape[1];
    if (paged)
      return dim == 0 ? paged->pages : dim == 1 ? paged->page : dim == 2 ? shape[1] : shape[3];
    if (packed && (dim == 1 || dim == 2))
      return dim == 1 ? packed->heads : shape[2] / packed->slots;
    return shape[dim];
  }

  /// Elements from row 0 of the batch and key head in `offsets` to row `row`; nothing where there
  /// is no such row. A box has heads of the next group in the slots that this group leaves, and
  /// rows of the next sequences after those of this one.
  std::optional<int64_t> getRowOffset(size_t rowDim, llvm::ArrayRef<int64_t> offsets, int64_t row,
                                      bool ofBox = false) const {
    if (row >= shape[rowDim] && !(ragged && ofBox))
      return std::nullopt;
    if (paged)
      return getPagedOffset(offsets[0], row);
    int64_t first = 0;
    if (ragged) {
      auto [begin, rows] = getSequence(offsets[0]);
      int64_t at = row / (packed ? packed->slots : 1);
      if (ofBox ? begin + at >= ragged->total : at >= rows)
        return std::nullopt;
      first = begin * strides[rowDim];
    }
    int64_t keyHead = rowDim > 0 ? offsets[rowDim - 1] : 0;
    if (!packed)
      return first + row * strides[rowDim];
    int64_t slot = row % packed->slots,
            most = ofBox ? packed->heads - keyHead * packed->group : packed->group;
    if (slot >= most)
      return std::nullopt;
    return first + row / packed->slots * strides[rowDim] + slot * packed->headStride;
  }

private:
  std::optional<int64_t> getPagedOffset(int64_t batch, int64_t row) const;
  /// Where the sequence of a batch begins, and how many rows it has.
  std::pair<int64_t, int64_t> getSequence(int64_t batch) const;
};

struct Argument {
  bool isScalar = false;
  Lane scalar{.i = 0};
  Memory memory;

  static Argument of(Array &array);
};

struct Options {
  /// Of random times; without a seed, times are those of the cost model.
  std::optional<uint64_t> seed;
  /// Whether values of register tiles are computed.
  bool numbers = true;
  /// A block stops after so many.
  unsigned maxFindings = 1;
  /// And after so much work: 64 an instruction and, where there are numbers, 1 an element of a
  /// tile.
  int64_t maxWork = int64_t(1) << 34;
  /// All blocks of a grid together.
  int64_t maxGridWork = std::numeric_limits<int64_t>::max();
  /// Receives the events of the block, if set.
  Timeline *timeline = nullptr;
};

/// A factor of a grid or of scratch for these arguments, on a device of so many multiprocessors.
int64_t evaluateFactor(mlir::Attribute factor, llvm::ArrayRef<Argument> arguments,
                       int64_t multiprocessors);

/// Bytes and rows that a block moves to and from an argument, by boxes and tiles.
struct Traffic {
  /// Of elements that exist, each as often as it is moved.
  double bytes = 0;
  /// The rows (or, of a vector, the elements) between the first and the last.
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;

  void join(const Traffic &other) {
    bytes += other.bytes;
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

/// The work of one block.
struct BlockResult {
  double cycles = 0;
  /// Cycles in which the resource was in use.
  double busy[kNumResources] = {};
  double flops = 0, bytes = 0;
  /// By argument.
  std::vector<Traffic> traffic;
  /// Bits of the elements that products multiply; 0 without products.
  unsigned elementBits = 0;
  std::vector<Finding> findings;
  /// As Options::maxWork counts it.
  int64_t work = 0;
};

/// A prediction for the whole grid.
struct Prediction {
  double milliseconds = 0;
  /// Of the products that were executed, masked elements included.
  double flops = 0;
  double fractionOfPeak = 0;
  Resource critical = Resource::Tensor;
  /// The fraction of the time that a multiprocessor uses each resource.
  double used[kNumResources] = {};
  int64_t numBlocks = 0, numSimulated = 0;
  double peakTflops = 0;
  /// The simulated block that takes longest.
  std::array<int64_t, 3> longest = {0, 0, 0};
};

class Program;

class Simulator {
public:
  /// Reads a kernel and checks the facts that need no run: the budgets of shared memory and
  /// registers. The device has `multiprocessors`, or as many as its kind of machine.
  static llvm::Expected<Simulator> create(mlir::func::FuncOp kernel,
                                          std::optional<int64_t> multiprocessors = std::nullopt);
  Simulator(Simulator &&);
  ~Simulator();

  llvm::ArrayRef<Finding> getFindings() const { return findings; }

  /// The extents of the grid for these arguments.
  llvm::Expected<std::array<int64_t, 3>> getGrid(llvm::ArrayRef<Argument> arguments) const;
  /// Runs one block.
  llvm::Expected<BlockResult> runBlock(llvm::ArrayRef<Argument> arguments, const Options &options,
                                       std::array<int64_t, 3> block) const;
  /// Runs all blocks up to the first with findings, and looks for races between them in global
  /// memory. Seeds begin with other blocks and go on in another order; blocks that can see what
  /// others do run a few at a time. Block i of a seed has times of its own.
  llvm::Expected<std::vector<Finding>> run(llvm::ArrayRef<Argument> arguments,
                                           const Options &options) const;
  /// Runs blocks that stand for all others by the cost model, without numbers.
  llvm::Expected<Prediction> predict(llvm::ArrayRef<Argument> arguments,
                                     int64_t maxWork = Options().maxWork) const;

  /// "producer 1 x 24, consumer 2 x 240 registers; 163912 bytes of shared memory".
  std::string describe() const;
  int64_t getSharedBytes() const { return sharedBytes; }
  int64_t getMultiprocessors() const { return multiprocessors; }
  /// The GPU whose clock times follow.
  const Chip &getChip() const;

private:
  explicit Simulator(std::unique_ptr<Program> program);

  std::unique_ptr<Program> program;
  std::vector<Finding> findings;
  int64_t sharedBytes = 0, multiprocessors = 0;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_SIMULATOR_H
