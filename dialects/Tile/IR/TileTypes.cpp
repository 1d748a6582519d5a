//===- TileTypes.cpp - syntax and verification of types ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

SharedType SharedType::withStages(int64_t count) const {
  return get(getContext(), getShape(), getElementType(), getSwizzle(), count, getQuads());
}

/// !tile.shared<128x64xbf16, swizzle = 128, stages = 2>, !tile.shared<64xf32, stages = 2>,
/// !tile.shared<64x128xf8E4M3FN, swizzle = 128, quads, stages = 2>
Type SharedType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t swizzle = 0, stages = 1;
  bool quads = false;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return {};
  if (shape.size() != 1 && (parser.parseComma() || parser.parseKeyword("swizzle") ||
                            parser.parseEqual() || parser.parseInteger(swizzle)))
    return {};
  bool isMore = succeeded(parser.parseOptionalComma());
  if (isMore && succeeded(parser.parseOptionalKeyword("quads"))) {
    quads = true;
    isMore = succeeded(parser.parseOptionalComma());
  }
  if (isMore &&
      (parser.parseKeyword("stages") || parser.parseEqual() || parser.parseInteger(stages)))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    ArrayRef<int64_t>(shape), elementType, swizzle, stages, quads);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t size : getShape())
    printer << size << "x";
  printer << getElementType();
  if (!isRow())
    printer << ", swizzle = " << getSwizzle();
  if (getQuads())
    printer << ", quads";
  if (getStages() != 1)
    printer << ", stages = " << getStages();
  printer << ">";
}

/// barrier_c1: a barrier has 1 to 64 stages
/// slot_c1: a slot has 1 to 64 stages
static LogicalResult verifyStages(EmitError emitError, int64_t stages) {
  int64_t most = attn::getMostOfAny(&attn::Machine::stages);
  if (stages >= 1 && stages <= most)
    return success();
  return emitError() << "expected 1 to " << most << " stages, got " << stages;
}

/// Bytes of the largest ring of tiles with such extents do not wrap.
static constexpr int64_t kMaxExtent = int64_t(1) << 24;

LogicalResult SharedType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type elementType,
                                 int64_t swizzle, int64_t stages, bool quads) {
  // shared_c1: a shared tile is a row, or a matrix whose rows are a multiple of 8, the swizzle's
  // period
  bool isRow = shape.size() == 1;
  if (!isRow && (shape.size() != 2 || shape[0] < 8 || shape[0] % 8 != 0))
    return emitError() << "expected one dimension, or two, the first a multiple of 8, got "
                       << shape;
  if (shape.back() < 1)
    return emitError() << "expected one column or more, got " << shape;
  // shared_c5: a shared tile has at most 2^24 rows and columns
  if (shape.front() > kMaxExtent || shape.back() > kMaxExtent)
    return emitError() << "expected at most " << kMaxExtent << " rows and columns, got " << shape;
  // shared_c2: elements of a shared tile have 8, 16 or 32 bits
  unsigned bits = elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (bits != 8 && bits != 16 && bits != 32)
    return emitError() << "expected elements of 8, 16 or 32 bits, got " << elementType;
  // shared_c3: the swizzle of a matrix is 128, 64 or 32 bytes, and a row has none
  if (isRow ? swizzle != 0 : !attn::isSwizzle(swizzle)) {
    auto [widest, middle, narrowest] = attn::kSwizzles;
    InFlightDiagnostic error = emitError() << "expected swizzle ";
    if (isRow)
      return error << "0, got " << swizzle;
    return error << widest << ", " << middle << " or " << narrowest << ", got " << swizzle;
  }
  // shared_c6: quads are of matrices of 8-bit elements, with columns in multiples of 16
  if (quads && (isRow || bits != 8 || shape[1] % 16 != 0))
    return emitError() << "expected quads of 8-bit elements in multiples of 16 columns, got "
                       << shape << " of " << elementType;
  // shared_c4: a ring has 1 to 64 stages, which are multiples of 1024 bytes, or of 128 if they are
  // rows
  if (failed(verifyStages(emitError, stages)))
    return failure();
  int64_t rowBytes = shape.back() * (bits / 8), step = isRow ? attn::kRowBytes : attn::kPlaceBytes;
  int64_t stageBytes = isRow ? rowBytes : shape[0] * llvm::alignTo(rowBytes, swizzle);
  if (stages > 1 && stageBytes % step != 0)
    return emitError() << "expected stages of a multiple of " << step << " bytes, got "
                       << stageBytes;
  return success();
}

/// !tile.tensor<128x64xf32>
Type TensorPlaceType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), ArrayRef(shape),
                    elementType);
}

void TensorPlaceType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType() << ">";
}

/// The most lanes and columns that some machine has.
static std::pair<int64_t, int64_t> getMostTensorMemory() {
  std::pair<int64_t, int64_t> most = {1, 1};
  for (const attn::Machine *machine : attn::getMachines())
    most = {std::max(most.first, machine->tensor.lanes),
            std::max(most.second, machine->tensor.columns)};
  return most;
}

LogicalResult TensorPlaceType::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                      Type elementType) {
  // tensor_c1: a tile in tensor memory is a matrix, whose rows fill lanes
  auto [lanes, columns] = getMostTensorMemory();
  if (shape.size() != 2 || shape[0] < 1 || shape[0] > attn::kBlockThreads || shape[0] % lanes != 0)
    return emitError() << "expected a matrix with rows in multiples of " << lanes << " up to "
                       << attn::kBlockThreads << ", got " << shape;
  // tensor_c2: its elements have 16 or 32 bits, and fill whole columns of those that there are
  unsigned bits = elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (bits != 16 && bits != 32)
    return emitError() << "expected elements of 16 or 32 bits, got " << elementType;
  if (int64_t most = columns * 32 / bits; shape[1] < 1 || shape[1] > most || shape[1] * bits % 32)
    return emitError() << "expected whole columns of 32 bits, at most " << columns << ", got "
                       << shape[1] << " elements of " << bits << " bits";
  return success();
}

LogicalResult ColumnsType::verify(EmitError emitError, int64_t count) {
  // columns_c1: a block claims a power of two of columns, at least 32 and at most all
  int64_t most = getMostTensorMemory().second;
  if (count >= attn::kLeastColumns && count <= most && llvm::isPowerOf2_64(count))
    return success();
  return emitError() << "expected a power of two of columns from " << attn::kLeastColumns << " to "
                     << most << ", got " << count;
}

LogicalResult RowsType::verify(EmitError emitError, int64_t count, int64_t warps) {
  // rows_c1: rows are a multiple of 8, and are dealt out to a number of warps that divides 8
  if (warps >= 1 && attn::kSwizzleRows % warps == 0 && count >= 1 && count <= kMaxExtent &&
      count % attn::kSwizzleRows == 0)
    return success();
  return emitError() << "expected a multiple of " << attn::kSwizzleRows
                     << " rows for as many warps or a part of that, got " << count << " and "
                     << warps;
}

LogicalResult BarrierType::verify(EmitError emitError, int64_t stages) {
  return verifyStages(emitError, stages);
}
LogicalResult SlotType::verify(EmitError emitError, int64_t stages) {
  return verifyStages(emitError, stages);
}
