//===- Layout.cpp - who holds which element of a register tile ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <numeric>

using namespace attn;
using namespace attn::tile;
using Source = Digit::Source;

//===----------------------------------------------------------------------===//
// The eight tables
//===----------------------------------------------------------------------===//

void Layout::add(Source source, int64_t extent, int64_t rowStride, int64_t columnStride) {
  int64_t &count = source == Source::Register ? registers : source == Source::Lane ? lanes : warps;
  digits.push_back({source, /*divisor=*/count, extent, rowStride, columnStride});
  count *= extent;
}

/// Whether rows are lanes, and a thread has all columns of one.
static bool hasRowsInLanes(const Product &product) { return product.form == Product::Form::Tensor; }

Layout Layout::rowsInLanes(const Product &product, int64_t units, int64_t rows, int64_t columns) {
  Layout layout(rows, columns);
  int64_t steps = rows / (product.rows * units);
  layout.add(Source::Register, columns, 0, 1);
  layout.add(Source::Register, steps, product.rows, 0);
  layout.add(Source::Lane, kLanes, 1, 0);
  layout.add(Source::Warp, product.getWarps(), kLanes, 0);
  layout.add(Source::Warp, units, product.rows * steps, 0);
  return layout;
}

/// Of each unit and step: the digits that all fragments of a product share.
void Layout::addRowsOfUnits(const Product &product, int64_t units) {
  int64_t warpRows = product.getWarpRows(), steps = rows / (product.rows * units);
  if (warpRows > kFragmentRows)
    add(Source::Register, warpRows / kFragmentRows, kFragmentRows, 0);
  add(Source::Register, steps, product.rows, 0);
  add(Source::Lane, kLanes / kQuad, 1, 0);
  add(Source::Warp, product.getWarps(), warpRows, 0);
  add(Source::Warp, units, product.rows * steps, 0);
}

Layout Layout::accumulator(const Product &product, int64_t units, int64_t rows, int64_t columns) {
  if (hasRowsInLanes(product))
    return rowsInLanes(product, units, rows, columns);
  Layout layout(rows, columns);
  layout.add(Source::Register, 2, 0, 1);
  layout.add(Source::Register, 2, 8, 0);
  layout.add(Source::Register, columns / 8, 0, 8);
  layout.add(Source::Lane, 4, 0, 2);
  layout.addRowsOfUnits(product, units);
  return layout;
}

Layout Layout::operandA(const Product &product, int64_t units, unsigned elementBits, int64_t rows,
                        int64_t columns) {
  if (hasRowsInLanes(product))
    return rowsInLanes(product, units, rows, columns);
  Layout layout(rows, columns);
  int64_t pack = 32 / elementBits;
  layout.add(Source::Register, pack, 0, 1);
  layout.add(Source::Register, 2, 8, 0);
  layout.add(Source::Register, 2, 0, 4 * pack);
  layout.add(Source::Register, columns / (8 * pack), 0, 8 * pack);
  layout.add(Source::Lane, 4, 0, pack);
  layout.addRowsOfUnits(product, units);
  return layout;
}

Layout Layout::operandAInQuads(const Product &product, int64_t units, int64_t rows,
                               int64_t columns) {
  Layout layout(rows, columns);
  layout.add(Source::Register, 2, 0, 1);
  layout.add(Source::Register, 2, 0, 8);
  layout.add(Source::Register, 2, 8, 0);
  layout.add(Source::Register, 2, 0, 16);
  layout.add(Source::Register, columns / 32, 0, 32);
  layout.add(Source::Lane, 4, 0, 2);
  layout.addRowsOfUnits(product, units);
  return layout;
}

Layout Layout::row(const Product &product, int64_t units, int64_t rows) {
  if (hasRowsInLanes(product))
    return rowsInLanes(product, units, rows, 1);
  Layout layout(rows, 1);
  layout.add(Source::Register, 2, 8, 0);
  layout.skip(Source::Lane, 4);
  layout.addRowsOfUnits(product, units);
  return layout;
}

Layout Layout::quad(const Product &product, int64_t units, int64_t rows) {
  if (hasRowsInLanes(product))
    return rowsInLanes(product, units, rows, kQuad);
  Layout layout(rows, 4);
  layout.add(Source::Register, 2, 8, 0);
  layout.add(Source::Lane, 4, 0, 1);
  layout.addRowsOfUnits(product, units);
  return layout;
}

Layout Layout::chunked(const Product &product, int64_t units, int64_t rows, int64_t columns) {
  if (hasRowsInLanes(product))
    return rowsInLanes(product, units, rows, columns);
  Layout layout(rows, columns);
  layout.add(Source::Register, 8, 0, 1);
  layout.add(Source::Register, 2, 8, 0);
  layout.add(Source::Register, columns / 32, 0, 32);
  layout.add(Source::Lane, 4, 0, 8);
  layout.addRowsOfUnits(product, units);
  return layout;
}

Layout Layout::blocked(int64_t vector, int64_t lanes, int64_t warps, int64_t rows,
                       int64_t columns) {
  Layout layout(rows, columns);
  int64_t rowsPerWarp = 32 / lanes;
  layout.add(Source::Register, vector, 0, 1);
  layout.add(Source::Register, columns / (vector * lanes), 0, vector * lanes);
  layout.add(Source::Register, rows / (rowsPerWarp * warps), rowsPerWarp * warps, 0);
  layout.add(Source::Lane, lanes, 0, vector);
  layout.add(Source::Lane, rowsPerWarp, 1, 0);
  layout.add(Source::Warp, warps, rowsPerWarp, 0);
  return layout;
}

Layout Layout::rowOfBlocks(int64_t lanes, int64_t warps, int64_t rows) {
  Layout layout(rows, 1);
  int64_t rowsPerWarp = 32 / lanes;
  layout.add(Source::Register, rows / (rowsPerWarp * warps), rowsPerWarp * warps, 0);
  layout.skip(Source::Lane, lanes);
  layout.add(Source::Lane, rowsPerWarp, 1, 0);
  layout.add(Source::Warp, warps, rowsPerWarp, 0);
  return layout;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

static int64_t select(Source source, Owner owner) {
  return source == Source::Register ? owner.reg : source == Source::Lane ? owner.lane : owner.warp;
}

Position Layout::getPosition(Owner owner) const {
  Position position;
  for (const Digit &digit : digits) {
    int64_t value = select(digit.source, owner) / digit.divisor % digit.extent;
    position.row += value * digit.rowStride;
    position.column += value * digit.columnStride;
  }
  return position;
}

Owner Layout::getOwner(Position position) const {
  Owner owner;
  auto give = [&](const Digit &digit, int64_t stride, int64_t &coordinate) {
    int64_t value = coordinate / stride;
    coordinate -= value * stride;
    int64_t &index = digit.source == Source::Register ? owner.reg
                     : digit.source == Source::Lane   ? owner.lane
                                                      : owner.warp;
    index += value * digit.divisor;
  };
  // No digit moves both coordinates, so that one descending order serves the two.
  llvm::SmallVector<Digit, 8> order(digits);
  llvm::sort(order, [](const Digit &a, const Digit &b) {
    return std::max(a.rowStride, a.columnStride) > std::max(b.rowStride, b.columnStride);
  });
  for (const Digit &digit : order) {
    if (digit.extent > 1 && digit.rowStride)
      give(digit, digit.rowStride, position.row);
    else if (digit.extent > 1 && digit.columnStride)
      give(digit, digit.columnStride, position.column);
  }
  return owner;
}

bool Layout::isFirstReplica(int64_t lane) const {
  return llvm::all_of(digits, [&](const Digit &digit) {
    return digit.source != Source::Lane || digit.rowStride || digit.columnStride ||
           lane / digit.divisor % digit.extent == 0;
  });
}

bool attn::tile::isSameMap(const Layout &from, const Layout &to) {
  if (from.getNumRows() != to.getNumRows() || from.getNumColumns() != to.getNumColumns() ||
      from.getNumWarps() != to.getNumWarps() || from.getNumRegisters() != to.getNumRegisters())
    return false;
  // Positions are sums of one term per index, so that the indices can be compared one at a time.
  auto agree = [&](int64_t count, int64_t Owner::*index) {
    return llvm::all_of(llvm::seq<int64_t>(0, count), [&](int64_t value) {
      Owner owner;
      owner.*index = value;
      return from.getPosition(owner) == to.getPosition(owner);
    });
  };
  return agree(from.getNumRegisters(), &Owner::reg) && agree(32, &Owner::lane) &&
         agree(from.getNumWarps(), &Owner::warp);
}

llvm::SmallVector<int64_t> attn::tile::findRegisters(const Layout &from, const Layout &to) {
  if (from.getNumRows() != to.getNumRows() || from.getNumColumns() != to.getNumColumns() ||
      from.getNumWarps() != to.getNumWarps() || from.getNumRegisters() != to.getNumRegisters())
    return {};
  for (int64_t lane : llvm::seq<int64_t>(0, kLanes))
    if (from.getPosition({0, lane, 0}) != to.getPosition({0, lane, 0}))
      return {};
  for (int64_t warp : llvm::seq(from.getNumWarps()))
    if (from.getPosition({warp, 0, 0}) != to.getPosition({warp, 0, 0}))
      return {};
  llvm::SmallVector<int64_t> registers;
  for (int64_t reg : llvm::seq(to.getNumRegisters())) {
    Owner owner = from.getOwner(to.getPosition({0, 0, reg}));
    if (owner.warp != 0 || owner.lane != 0)
      return {};
    registers.push_back(owner.reg);
  }
  return registers;
}
