//===- Cells.cpp - conditions of a mask that are the same in all of a tile --------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/Cells.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <numeric>

using namespace mlir;

namespace attn {

namespace {
/// (position / divisor) + offset, rounded down.
struct Quotient {
  bool ofKeys;
  int64_t divisor = 1, offset = 0;
};

/// Facts about a value of the region.
struct Facts {
  Cell cell;
  /// Whether it depends on a tensor's elements at places that differ with positions.
  bool reads = false;
  std::optional<Quotient> quotient = {};

  bool isPositional() const { return cell.rows || cell.keys; }
};

class CellReader {
public:
  explicit CellReader(Region &mask) : mask(mask) {}

  const Facts &get(Value value);

private:
  Facts read(Value value);
  std::optional<Quotient> readQuotient(Operation *op);
  std::optional<Quotient> divide(const Quotient &dividend, int64_t divisor) const;

  Region &mask;
  llvm::DenseMap<Value, Facts> known;
};
} // namespace

/// Beyond all positions.
static constexpr int64_t kLargest = int64_t(1) << 28;

const Facts &CellReader::get(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  Facts facts = read(value);
  return known[value] = facts;
}

static Cell getCellOf(const Quotient &quotient) {
  return quotient.ofKeys ? Cell{0, quotient.divisor} : Cell{quotient.divisor, 0};
}

Facts CellReader::read(Value value) {
  if (value == mask.getArgument(2) || value == mask.getArgument(3)) {
    Quotient quotient{value == mask.getArgument(3)};
    return {getCellOf(quotient), /*reads=*/false, quotient};
  }
  Operation *op = value.getDefiningOp();
  if (!op || !mask.isAncestor(op->getParentRegion()))
    return {};
  if (op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return {{1, 1}};
  Facts facts;
  for (Value operand : op->getOperands()) {
    const Facts &of = get(operand);
    facts.cell.rows = std::gcd(facts.cell.rows, of.cell.rows);
    facts.cell.keys = std::gcd(facts.cell.keys, of.cell.keys);
    facts.reads |= of.reads;
  }
  facts.reads |= isa<tensor::ExtractOp>(op) && facts.isPositional();
  facts.quotient = readQuotient(op);
  if (facts.quotient)
    facts.cell = getCellOf(*facts.quotient);
  return facts;
}

std::optional<Quotient> CellReader::divide(const Quotient &dividend, int64_t divisor) const {
  if (divisor <= 0 || divisor >= kLargest || dividend.divisor * divisor >= kLargest ||
      dividend.offset % divisor != 0)
    return std::nullopt;
  return Quotient{dividend.ofKeys, dividend.divisor * divisor, dividend.offset / divisor};
}

/// Casts, sums with constants and divisions by them of what is a quotient. Positions fit 32 bits,
/// and index arithmetic does not wrap, as MaskTiles has it.
std::optional<Quotient> CellReader::readQuotient(Operation *op) {
  auto getOperand = [&](unsigned number) -> std::optional<Quotient> {
    return get(op->getOperand(number)).quotient;
  };
  auto getNumber = [&](unsigned number) -> std::optional<int64_t> {
    APInt constant;
    if (!matchPattern(op->getOperand(number), m_ConstantInt(&constant)) ||
        constant.abs().uge(kLargest))
      return std::nullopt;
    return constant.getSExtValue();
  };
  auto isWide = [](Type type) { return type.isIndex() || type.getIntOrFloatBitWidth() >= 32; };
  if (op->getNumResults() != 1 || !isa<IntegerType, IndexType>(op->getResult(0).getType()) ||
      !isWide(op->getResult(0).getType()) || op->getNumOperands() == 0)
    return std::nullopt;
  std::optional<Quotient> of = getOperand(0);
  bool isNatural = of && of->offset >= 0;
  if (op->getNumOperands() == 1) {
    bool keepsSign = isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op);
    bool keepsNatural = isa<arith::IndexCastUIOp, arith::ExtUIOp>(op);
    return keepsSign || (keepsNatural && isNatural) ? of : std::nullopt;
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> number = getNumber(1);
  if (isa<arith::AddIOp>(op) && !number) {
    number = getNumber(0);
    of = getOperand(1);
  }
  if (!of || !number)
    return std::nullopt;
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    of->offset += isa<arith::AddIOp>(op) ? *number : -*number;
    return std::abs(of->offset) < kLargest ? of : std::nullopt;
  }
  bool isShift = isa<arith::ShRSIOp, arith::ShRUIOp>(op);
  bool isDown = isa<arith::FloorDivSIOp, arith::ShRSIOp>(op);
  // Rounding to zero is rounding down for what is not negative.
  bool isQuotient = isa<arith::DivSIOp, arith::DivUIOp, arith::ShRUIOp>(op) && isNatural;
  if ((!isDown && !isQuotient) || *number < 0 || (isShift && *number > 27))
    return std::nullopt;
  return divide(*of, isShift ? int64_t(1) << *number : *number);
}

namespace {
/// The kind of conditions that a condition is made of.
enum class Made { OfNone, OfWanted, OfOthers };

/// Finds the largest conditions that are made of wanted ones alone.
class Collector {
public:
  explicit Collector(std::function<Made(Value)> classify) : classify(std::move(classify)) {}

  Made collect(Value value);
  llvm::SetVector<Value> found;

private:
  Made collectAll(ValueRange values);

  std::function<Made(Value)> classify;
  llvm::DenseMap<Value, Made> known;
};
} // namespace

/// The conditions that a condition is made of, none if it is made of no others.
static ValueRange getParts(Value value) {
  Operation *op = value.getDefiningOp();
  bool isMade = isa_and_nonnull<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp>(op);
  return isMade && value.getType().isInteger(1) ? op->getOperands() : ValueRange();
}

Made Collector::collectAll(ValueRange values) {
  SmallVector<Made> made = llvm::map_to_vector(values, [&](Value v) { return collect(v); });
  if (llvm::is_contained(made, Made::OfOthers)) {
    for (auto [value, kind] : llvm::zip_equal(values, made))
      if (kind == Made::OfWanted)
        found.insert(value);
    return Made::OfOthers;
  }
  return llvm::is_contained(made, Made::OfWanted) ? Made::OfWanted : Made::OfNone;
}

Made Collector::collect(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  ValueRange parts = getParts(value);
  Made made = parts.empty() ? classify(value) : collectAll(parts);
  return known[value] = made;
}

/// The value that the mask yields, or null if it is no mask.
static Value getKept(Region &mask) {
  if (!mask.hasOneBlock() || mask.getNumArguments() != 4 || !mask.front().mightHaveTerminator())
    return {};
  Operation *terminator = mask.front().getTerminator();
  return terminator->getNumOperands() == 1 ? terminator->getOperand(0) : Value();
}

SmallVector<Value> findTileConditions(Region &mask, Cell tile) {
  Value kept = mask.empty() || tile.rows <= 0 || tile.keys <= 0 ? Value() : getKept(mask);
  if (!kept)
    return {};
  CellReader reader(mask);
  Collector collector([&](Value condition) {
    const Facts &facts = reader.get(condition);
    if (!facts.isPositional())
      return Made::OfNone;
    return facts.reads && facts.cell.holds(tile) ? Made::OfWanted : Made::OfOthers;
  });
  if (collector.collect(kept) == Made::OfWanted)
    return {kept};
  return collector.found.takeVector();
}

std::optional<Cell> findCell(Region &mask) {
  Value kept = mask.empty() ? Value() : getKept(mask);
  if (!kept)
    return std::nullopt;
  CellReader reader(mask);
  std::optional<Cell> cell;
  Collector collector([&](Value condition) {
    const Facts &facts = reader.get(condition);
    bool isOfCells = facts.reads && facts.cell.rows != 1 && facts.cell.keys != 1;
    if (isOfCells) {
      Cell other = cell.value_or(Cell());
      cell = {std::gcd(other.rows, facts.cell.rows), std::gcd(other.keys, facts.cell.keys)};
    }
    return isOfCells ? Made::OfWanted : Made::OfOthers;
  });
  collector.collect(kept);
  return cell;
}

} // namespace attn
