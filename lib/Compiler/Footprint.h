//===- Footprint.h - the bytes that an array lies in
//--------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_FOOTPRINT_H
#define ATTN_LIB_COMPILER_FOOTPRINT_H

#include "attn/Runtime.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace attn {

/// The bytes of an array that has elements.
class Footprint {
public:
  /// None where an element would lie outside of the address space. Strides are in elements.
  static std::optional<Footprint> find(const TensorView &view, llvm::ArrayRef<int64_t> strides);

  /// Whether each dimension's steps are longer than all that lies within one. So it is in every
  /// array that was transposed, sliced or padded, whatever the order of its dimensions.
  bool hasOwnElements() const;

  /// False if no byte is in both: for parts of one array that some dimension tells apart too, such
  /// as its even and its odd rows. True for others whose bytes lie among each other.
  bool mayOverlap(const Footprint &other) const;

private:
  /// A dimension of several elements that differ in address, in bytes.
  struct Step {
    uint64_t length, count;
  };

  uint64_t getWidth(uint64_t period) const;
  bool isApart(const Footprint &other, uint64_t period) const;

  /// Addresses of the first byte and of the last one.
  uint64_t first = 0, last = 0;
  uint64_t elementSize = 1;
  /// Shortest first.
  llvm::SmallVector<Step, 4> steps;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_FOOTPRINT_H
