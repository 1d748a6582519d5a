//===- CallRules.h - what the arguments of a call have to be ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_CALLRULES_H
#define ATTN_LIB_PLAN_CALLRULES_H

#include "attn/Runtime.h"
#include "lib/Plan/Extent.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace attn {

/// The rules that a call is checked against; arguments first, results after them.
struct CallRules {
  struct Value {
    std::string name;
    DataType type;
    bool isScalar = false, isResult = false;
    /// Whether it is read element by element, so that its last stride is any too.
    bool hasAnyStrides = false;
    llvm::SmallVector<int64_t, 4> shape;
    ExtentDims dims;
    /// Bytes that the address and every stride but the last are multiples of; 0 for an element's,
    /// and then of the address only.
    int64_t alignment = 0;

    bool operator==(const Value &) const = default;
  };
  std::string name;
  llvm::SmallVector<Value, 8> values;
  size_t numArguments = 0;
  unsigned numGroups = 0;
  /// Rules for extents, besides that they are equal within their group.
  llvm::SmallVector<ExtentRule> extents;
  /// The batch of each value that has one, and the most batches of one grid. Empty when a call
  /// cannot be split.
  llvm::SmallVector<BatchDim> batches;
  int64_t maxBatches = 0;

  bool operator==(const CallRules &) const = default;
};

} // namespace attn

#endif // ATTN_LIB_PLAN_CALLRULES_H
