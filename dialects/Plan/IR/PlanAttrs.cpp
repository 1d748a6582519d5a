//===- PlanAttrs.cpp - verifying what is said about calls -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanDialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::plan;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult ExtentAttr::verify(EmitError emitError, int64_t argument, int64_t dim,
                                 int64_t divisor, int64_t multiplier, int64_t unit, int64_t less) {
  // extent_c1: argument, dim and less are not negative, the divisor is positive, the multiplier is
  // 1 to 2^20 and the unit 1 to 64
  if (argument < 0 || dim < 0 || divisor < 1)
    return emitError()
           << "expected argument and dim of at least 0 and a divisor of at least 1, got "
           << argument << ", " << dim << " and " << divisor;
  if (multiplier < 1 || multiplier > (1 << 20))
    return emitError() << "expected a multiplier from 1 to 1048576, got " << multiplier;
  if (unit < 1 || unit > 64)
    return emitError() << "expected a unit from 1 to 64, got " << unit;
  if (less < 0)
    return emitError() << "expected less to be at least 0, got " << less;
  return success();
}

LogicalResult PartsAttr::verify(EmitError emitError, ArrayAttr blocks, Attribute keys, int64_t most,
                                bool slots) {
  // parts_c1: blocks and keys are integers and extents, and there are up to 1 to 1024 parts
  if (most < 1 || most > 1024)
    return emitError() << "expected at most 1 to 1024 parts, got " << most;
  if (!isa<IntegerAttr, ExtentAttr>(keys) ||
      !llvm::all_of(blocks, llvm::IsaPred<IntegerAttr, ExtentAttr>))
    return emitError() << "expected integers and #plan.extent as blocks and keys, got " << blocks
                       << " and " << keys;
  // parts_c2: slots are for the sequences that the first of the blocks counts
  if (slots && blocks.empty())
    return emitError() << "expected the number of sequences as the first of the blocks, got none";
  return success();
}

LogicalResult PackedAttr::verify(EmitError emitError, int64_t slots, int64_t keys) {
  // packed_c1: slots are a power of two from 2 to 64, the argument is not negative
  if (slots >= 2 && slots <= 64 && llvm::isPowerOf2_64(slots) && keys >= 0)
    return success();
  return emitError()
         << "expected slots of 2, 4, 8, 16, 32 or 64 and an argument of at least 0, got " << slots
         << " and " << keys;
}

LogicalResult PagedAttr::verify(EmitError emitError, int64_t table, int64_t page) {
  // paged_c1: the argument is not negative, and a page has keys
  if (table >= 0 && page >= 1)
    return success();
  return emitError() << "expected an argument of at least 0 and a page of at least 1 key, got "
                     << table << " and " << page;
}

LogicalResult RaggedAttr::verify(EmitError emitError, int64_t offsets, int64_t most, int64_t dim) {
  // ragged_c1: arguments and dim are not negative
  if (offsets >= 0 && most >= 0 && dim >= 0)
    return success();
  return emitError() << "expected arguments and a dim of at least 0, got " << offsets << ", "
                     << most << " and " << dim;
}

LogicalResult TargetAttr::verify(EmitError emitError, StringRef name) {
  // target_c2: `#plan.target` names a machine that there is
  if (attn::findMachine(name))
    return success();
  return emitError() << "expected the machine " << attn::listMachines() << ", got '" << name << "'";
}

LogicalResult MultiprocessorsAttr::verify(EmitError emitError, int64_t blocks) {
  // multiprocessors_c1: a multiprocessor has 1 to 32 blocks
  if (blocks >= 1 && blocks <= 32)
    return success();
  return emitError() << "expected 1 to 32 blocks for each multiprocessor, got " << blocks;
}

LogicalResult RangeAttr::verify(EmitError emitError, int64_t argument, int64_t dim, int64_t least,
                                int64_t most, ExtentAttr per, PartsAttr parts, StringAttr device) {
  // range_c2: a range of parts or of the device is one of no argument
  if ((parts || device) && (argument != -1 || dim != -1 || per || (parts && device)))
    return emitError() << "expected neither argument, dim nor per beside parts or device";
  // range_c3: the quantity of a device is "memory_rate"
  if (device && device.getValue() != "memory_rate")
    return emitError() << "expected a device's \"memory_rate\", got " << device;
  // range_c1: argument and dim are not negative, and the range holds a size
  if ((parts || device || (argument >= 0 && dim >= 0)) && least >= 0 && least <= most)
    return success();
  return emitError() << "expected argument and dim of at least 0 and a range of sizes, got "
                     << argument << ", " << dim << " and " << least << " to " << most;
}
