//===- Jobs.h - several processes that fuzz side by side --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_JOBS_H
#define ATTN_TEST_FUZZ_JOBS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <string>

namespace attn::fuzz {

/// How much was done.
struct Counts {
  uint64_t candidates = 0, valid = 0, mutants = 0, actions = 0, refused = 0;
};

/// What a job has to tell when it ends.
struct Report {
  Counts counts;
  /// Findings that ended a process, those that are no fault here, and those that no text shows.
  uint64_t crashes = 0, excused = 0, unconfirmed = 0;
  /// Jobs that ended without a report.
  uint64_t lost = 0;
  /// Title to the number of times.
  std::map<std::string, uint64_t> findings;

  void add(const Report &other);
  void print(llvm::raw_ostream &os, double seconds) const;
};

/// Runs `body` in processes of their own, side by side, and adds up what they report.
Report runJobs(unsigned jobs, llvm::function_ref<Report(unsigned job)> body);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_JOBS_H
