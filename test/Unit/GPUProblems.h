//===- GPUProblems.h - all that the rule of schedules tells apart ------------------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_GPUPROBLEMS_H
#define ATTN_TEST_UNIT_GPUPROBLEMS_H

#include "lib/Transforms/Attn/ScheduleRule.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "gtest/gtest.h"

namespace attn {

inline const Machine &getHopper() { return *findMachine("sm_90a"); }

/// All head dimensions that a GPU takes, and all that regions may ask for.
inline void forEachProblem(llvm::function_ref<void(const GPUProblem &)> visit) {
  for (int64_t d = 8; d <= 256; d += 8)
    for (int64_t dv = 8; dv <= 256; dv += 8)
      for (unsigned flags = 0; flags < 256; ++flags)
        for (int64_t weight :
             {0, 1, 2, 6, 7, 8, 10, 14, 15, 16, 18, 21, 22, 24, 27, 28, 33, 1000}) {
          GPUProblem problem{d, dv};
          problem.isMasked = flags & 1;
          problem.scoreReadsTensors = flags & 2;
          problem.work = {bool(flags & 4), bool(flags & 8), weight};
          problem.work.scoreConditions = weight;
          problem.work.gathersApart = problem.work.gathers && weight % 2;
          problem.splits = flags & 16 ? 7 : 1;
          problem.hidesFullTiles = flags & 32;
          problem.hasFactors = flags & 64;
          problem.hasScore = problem.scoreReadsTensors || problem.hasFactors || (flags & 128);
          visit(problem);
          if (testing::Test::HasFatalFailure())
            return;
        }
}

} // namespace attn

#endif // ATTN_TEST_UNIT_GPUPROBLEMS_H
