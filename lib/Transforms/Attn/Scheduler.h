//===- Scheduler.h - schedules of ops --------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_SCHEDULER_H
#define ATTN_LIB_TRANSFORMS_ATTN_SCHEDULER_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Transforms/Attn/CandidateRegisters.h"
#include "lib/Transforms/Attn/ScheduleRule.h"

namespace attn {

/// Whether an op is an attention whose rows are heads too, few of them.
bool isPacked(mlir::Operation *op);

/// Makes schedules from the rule and from the words that somebody has said.
struct Scheduler {
  /// Null on a CPU, where blocks have no stages and one thread.
  const Machine *machine = nullptr;
  /// Of a CPU: f32 in a register, and whether it multiplies pairs of bf16.
  int64_t lanes = 16;
  bool bf16Dot = false;
  Overrides said;
  /// On a GPU, what gradients take of a thread's registers.
  std::shared_ptr<CandidateRegisters> registers = nullptr;
  /// Keys of a step of a fixed split, where they are known; 0: by the op. Packed rows have those of
  /// the op that was packed.
  int64_t keysOfParts = 0;

  int64_t countSplits() const { return said.get(&Schedule::splits).value_or(1); }
  /// Keys of a part, or 0.
  int64_t getFixedSplit() const { return said.get(&Schedule::fixedSplit).value_or(0); }
  /// Whether somebody has said rows or keys, or also how many of them are in flight.
  bool areSizesSaid() const { return said.has(&Schedule::blockM) || said.has(&Schedule::blockN); }
  bool isBlockSaid() const { return areSizesSaid() || said.has(&Schedule::stages); }

  /// The question to the rule for a GPU.
  GPUProblem getProblem(AttentionOp op) const;
  /// Keys of a step that fill the parts of a fixed split; 0 where there is none.
  int64_t getKeysOfParts(AttentionOp op) const;
  /// The choice of the rule for all calls of an op.
  Choice choose(mlir::Operation *op) const;
  /// The choice, but for the words that are said and what follows from them. A remark names the row
  /// that decided.
  mlir::FailureOr<ScheduleAttr> make(mlir::Operation *op, const Choice &choice) const;

private:
  void fitToFixedSplit(AttentionOp op, Schedule &schedule) const;
  void dropDependents(Schedule &schedule) const;
  void settle(mlir::Operation *op, Schedule &schedule) const;
};

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_SCHEDULER_H
