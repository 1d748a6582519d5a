//===- CandidateRegisters.h - what a block would take of a thread's registers -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The rule asks the program itself: a copy of an op, with the sizes of a candidate, goes down to
// room 6, and its tiles are counted there. Rooms 1 to 3 know nothing of tiles, so that the Attn
// dialect has an interface for it, which lib/Pipelines registers.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_CANDIDATEREGISTERS_H
#define ATTN_LIB_TRANSFORMS_ATTN_CANDIDATEREGISTERS_H

#include "lib/Schedule/Schedule.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/Operation.h"
#include <memory>
#include <optional>

namespace attn {

/// Lowers candidates, and remembers what it has counted.
class CandidateRegisters {
public:
  virtual ~CandidateRegisters() = default;

  /// Registers of a thread that the tiles of a kernel of `op` leave of its budget, in the role that
  /// they leave the fewest. None if there is no such kernel.
  virtual std::optional<int64_t> countSpare(mlir::Operation *op, const Schedule &schedule) = 0;
};

class CandidateInterface : public mlir::DialectInterface::Base<CandidateInterface> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CandidateInterface)
  explicit CandidateInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// For the ops of one program.
  virtual std::unique_ptr<CandidateRegisters> makeRegisters() const = 0;
};

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_CANDIDATEREGISTERS_H
