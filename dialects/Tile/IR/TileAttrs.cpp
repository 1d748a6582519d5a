//===- TileAttrs.cpp - verifying and instantiating layouts ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;
using namespace attn::tile;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// Layouts and shapes
//===----------------------------------------------------------------------===//

/// layout_c1: a block of 1024 threads has the units, each of which has whole products' rows
static LogicalResult verifyRows(const Product &product, int64_t units, int64_t rows,
                                EmitError emitError) {
  if (int64_t most = kBlockThreads / product.threads; units < 1 || units > most)
    return emitError() << "expected 1 to " << most << " units, got " << units;
  int64_t step = product.rows * units;
  if (rows > 0 && rows % step == 0)
    return success();
  return emitError() << "expected rows in multiples of " << step << " (" << product.rows
                     << " for each of " << units << " units), got " << rows;
}

/// layout_c10: a product is one of a machine in lib/Machine
static LogicalResult verifyProduct(StringRef product, EmitError emitError) {
  if (findProduct(product))
    return success();
  return emitError() << "expected the product " << listProducts() << ", got '" << product << "'";
}

/// The most elements of a tile: many times as many as the threads of a block hold. Work per element
/// stays bounded.
static constexpr int64_t kMaxElements = int64_t(1) << 20;

static LogicalResult verifyRank(ArrayRef<int64_t> shape, size_t rank, EmitError emitError) {
  // layout_c2: the tile has the layout's rank
  if (shape.size() != rank)
    return emitError() << "expected a tile of rank " << rank << ", got rank " << shape.size();
  // layout_c7: the tile has at most 2^20 elements
  int64_t elements = 1;
  for (int64_t size : shape) {
    elements = size > kMaxElements ? size : elements * std::max<int64_t>(size, 1);
    if (elements > kMaxElements)
      return emitError() << "expected at most " << kMaxElements << " elements in registers, got "
                         << shape;
  }
  return success();
}

/// layout_c3: columns fill whole groups: 8 in `acc`, what a product sums over in `operand_a`, 32 in
/// `chunked`, `vector * lanes` in `blocked`
static LogicalResult verifyColumns(int64_t multiple, int64_t columns, EmitError emitError) {
  if (columns > 0 && columns % multiple == 0)
    return success();
  return emitError() << "expected columns in multiples of " << multiple << ", got " << columns;
}

/// Of positive numbers; the last there is where they have no product.
static int64_t multiply(int64_t x, int64_t y) {
  int64_t product;
  return llvm::MulOverflow(x, y, product) ? std::numeric_limits<int64_t>::max() : product;
}

static LogicalResult verifyBlocks(BlockedAttr layout, int64_t rows, EmitError emitError) {
  // layout_c6: the numbers of `blocked` are positive, its lanes divide 32, its rows fill whole
  // blocks
  int64_t vector = layout.getVector(), lanes = layout.getLanes(), warps = layout.getWarps();
  if (vector < 1 || lanes < 1 || warps < 1 || 32 % lanes != 0)
    return emitError() << "expected positive vector and warps and lanes that divide 32, got "
                       << layout;
  int64_t step = multiply(32 / lanes, warps);
  if (rows <= 0 || rows % step != 0)
    return emitError() << "expected rows in multiples of " << step << ", got " << rows;
  return success();
}

LogicalResult AccAttr::verify(EmitError emitError, int64_t, StringRef product) {
  return verifyProduct(product, emitError);
}

OperandAAttr AccAttr::getOperand(bool quads) const {
  return OperandAAttr::get(getContext(), getUnits(), getProduct(), quads);
}

LogicalResult OperandAAttr::verify(EmitError emitError, int64_t, StringRef product, bool) {
  return verifyProduct(product, emitError);
}

LogicalResult AccAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  if (failed(verifyRank(shape, 2, emitError)) ||
      failed(verifyRows(getUnit(), getUnits(), shape[0], emitError)))
    return failure();
  return verifyColumns(kFragmentColumns, shape[1], emitError);
}

LogicalResult OperandAAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                           EmitError emitError) const {
  if (failed(verifyRank(shape, 2, emitError)) ||
      failed(verifyRows(getUnit(), getUnits(), shape[0], emitError)))
    return failure();
  // layout_c4: elements of `operand_a` have 8 or 16 bits, and 8 in quads
  unsigned bits = elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (bits != 8 && bits != 16)
    return emitError() << "expected elements of 8 or 16 bits in #tile.operand_a, got "
                       << elementType;
  if (getQuads() && bits != 8)
    return emitError() << "expected elements of 8 bits in quads, got " << elementType;
  return verifyColumns(getUnit().sumBytes * 8 / bits, shape[1], emitError);
}

LogicalResult RowAttr::verify(EmitError emitError, Attribute of) {
  // layout_c9: a `row` is of `acc` or `blocked`
  if (isa_and_nonnull<AccAttr, BlockedAttr>(of))
    return success();
  return emitError() << "expected the rows of #tile.acc or #tile.blocked, got " << of;
}

LogicalResult RowAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  if (failed(verifyRank(shape, 1, emitError)))
    return failure();
  if (auto blocked = dyn_cast<BlockedAttr>(getOf()))
    return verifyBlocks(blocked, shape[0], emitError);
  auto acc = cast<AccAttr>(getOf());
  return verifyRows(acc.getUnit(), acc.getUnits(), shape[0], emitError);
}

LogicalResult QuadAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  if (failed(verifyRank(shape, 2, emitError)) ||
      failed(verifyRows(getOf().getUnit(), getOf().getUnits(), shape[0], emitError)))
    return failure();
  // layout_c5: a `quad` tile has four columns, one for each lane
  if (shape[1] != kQuad)
    return emitError() << "expected 4 columns in #tile.quad, got " << shape[1];
  return success();
}

LogicalResult ChunkedAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                          EmitError emitError) const {
  if (failed(verifyRank(shape, 2, emitError)) ||
      failed(verifyRows(getOf().getUnit(), getOf().getUnits(), shape[0], emitError)))
    return failure();
  // layout_c8: elements of `chunked` have 16 or 32 bits
  unsigned bits = elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (bits != 16 && bits != 32)
    return emitError() << "expected elements of 16 or 32 bits in #tile.chunked, got "
                       << elementType;
  return verifyColumns(32, shape[1], emitError);
}

LogicalResult BlockedAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                          EmitError emitError) const {
  if (failed(verifyRank(shape, 2, emitError)) || failed(verifyBlocks(*this, shape[0], emitError)))
    return failure();
  return verifyColumns(multiply(getVector(), getLanes()), shape[1], emitError);
}

//===----------------------------------------------------------------------===//
// Instances
//===----------------------------------------------------------------------===//

bool attn::tile::hasLayout(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile &&
         isa_and_nonnull<AccAttr, OperandAAttr, RowAttr, QuadAttr, ChunkedAttr, BlockedAttr>(
             tile.getEncoding());
}

Layout attn::tile::getLayout(RankedTensorType type) {
  int64_t rows = type.getDimSize(0), columns = type.getRank() > 1 ? type.getDimSize(1) : 1;
  return TypeSwitch<Attribute, Layout>(type.getEncoding())
      .Case<AccAttr>([&](AccAttr layout) {
        return Layout::accumulator(layout.getUnit(), layout.getUnits(), rows, columns);
      })
      .Case<OperandAAttr>([&](OperandAAttr layout) {
        if (layout.getQuads())
          return Layout::operandAInQuads(layout.getUnit(), layout.getUnits(), rows, columns);
        return Layout::operandA(layout.getUnit(), layout.getUnits(), type.getElementTypeBitWidth(),
                                rows, columns);
      })
      .Case<RowAttr>([&](RowAttr layout) {
        if (auto blocked = dyn_cast<BlockedAttr>(layout.getOf()))
          return Layout::rowOfBlocks(blocked.getLanes(), blocked.getWarps(), rows);
        auto acc = cast<AccAttr>(layout.getOf());
        return Layout::row(acc.getUnit(), acc.getUnits(), rows);
      })
      .Case<QuadAttr>([&](QuadAttr layout) {
        return Layout::quad(layout.getOf().getUnit(), layout.getOf().getUnits(), rows);
      })
      .Case<ChunkedAttr>([&](ChunkedAttr layout) {
        return Layout::chunked(layout.getOf().getUnit(), layout.getOf().getUnits(), rows, columns);
      })
      .Default([&](Attribute layout) {
        auto blocked = cast<BlockedAttr>(layout);
        return Layout::blocked(blocked.getVector(), blocked.getLanes(), blocked.getWarps(), rows,
                               columns);
      });
}

bool attn::tile::isConvertible(RankedTensorType from, RankedTensorType to) {
  auto chunked = dyn_cast<ChunkedAttr>(to.getEncoding());
  // Lanes exchange registers with two elements.
  return (chunked && from.getElementTypeBitWidth() == 16 &&
          chunked.getOf() == from.getEncoding()) ||
         isSameMap(getLayout(from), getLayout(to)) ||
         !findRegisters(getLayout(from), getLayout(to)).empty();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// kernel_c9: a cluster has one to three extents from 1, and at most 8 blocks
static LogicalResult verifyCluster(DenseI64ArrayAttr cluster, EmitError emitError) {
  int64_t blocks = 1;
  bool isRight = !cluster || (!cluster.empty() && cluster.size() <= 3);
  for (int64_t extent : cluster ? cluster.asArrayRef() : ArrayRef<int64_t>()) {
    isRight &= extent >= 1 && extent <= 8;
    blocks *= isRight ? extent : 1;
  }
  if (isRight && blocks <= 8)
    return success();
  return emitError() << "expected one to three extents of a cluster of at most 8 blocks, got "
                     << cluster;
}

LogicalResult KernelAttr::verify(EmitError emitError, int64_t warpgroups, ArrayAttr grid,
                                 DenseI64ArrayAttr cluster, bool, Schedule schedule) {
  if (failed(verifyCluster(cluster, emitError)))
    return failure();
  // kernel_c11: the schedule keeps `schedule_c3` to `schedule_c9`
  if (std::string why = refuseSchedule(schedule); !why.empty())
    return emitError() << why;
  // kernel_c3: a block has 1 to 8 warpgroups
  int64_t most = getMostOfAny(&Machine::warpgroups), mostStages = getMostOfAny(&Machine::stages);
  if (warpgroups < 1 || warpgroups > most)
    return emitError() << "expected 1 to " << most << " warpgroups, got " << warpgroups;
  // kernel_c8: a ring of a kernel has 1 to 64 stages
  if (schedule.stages < 1 || schedule.stages > mostStages)
    return emitError() << "expected 1 to " << mostStages << " stages, got " << schedule.stages;
  // kernel_c4: the grid is at most three lists of integers, extents, multiprocessors and parts
  if (grid.size() > 3)
    return emitError() << "expected at most 3 grid dimensions, got " << grid.size();
  for (Attribute dimension : grid) {
    auto factors = dyn_cast<ArrayAttr>(dimension);
    if (!factors ||
        !llvm::all_of(factors,
                      llvm::IsaPred<IntegerAttr, ExtentAttr, MultiprocessorsAttr, PartsAttr>))
      return emitError() << "expected a list of integers, #plan.extent, #plan.multiprocessors and "
                            "#plan.parts per grid dimension, got "
                         << dimension;
    // kernel_c7: integers of the grid are 1 to 2^31 - 1
    for (Attribute factor : factors)
      if (auto integer = dyn_cast<IntegerAttr>(factor);
          integer &&
          (!integer.getType().isSignlessIntOrIndex() || !integer.getValue().isStrictlyPositive() ||
           integer.getValue().getActiveBits() > 31))
        return emitError() << "expected integers from 1 to 2147483647 in the grid, got " << factor;
  }
  return success();
}

KernelAttr KernelAttr::withBlocksThatStay(int64_t blocks) const {
  Builder b(getContext());
  Attribute factor = MultiprocessorsAttr::get(getContext(), blocks);
  Schedule schedule = getSchedule();
  schedule.stay = false;
  schedule.tail = 0;
  return get(getContext(), getWarpgroups(), b.getArrayAttr(b.getArrayAttr(factor)), getCluster(),
             getProgrammatic(), schedule);
}

bool KernelAttr::isStaying() const {
  return llvm::any_of(getGrid(), [](Attribute dimension) {
    return llvm::any_of(cast<ArrayAttr>(dimension), llvm::IsaPred<MultiprocessorsAttr>);
  });
}
