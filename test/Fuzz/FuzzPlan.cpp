//===- FuzzPlan.cpp - any text as the plan of a kernel ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Plan/Plan.h"
#include <cstdlib>
#include <cstring>

using namespace attn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto plans = readPlan(text);
  if (!plans) {
    llvm::consumeError(plans.takeError());
    return 0;
  }
  // What was read can be written and read again.
  auto again = readPlan(writePlan(*plans));
  if (!again || *again != *plans)
    abort();
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t largest);

/// Begins with a plan that is right.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t largest, unsigned) {
  static const std::string plan = writePlan({{KernelPlan()}, {}});
  if (size < 8 && largest >= plan.size()) {
    size = plan.size();
    memcpy(data, plan.data(), size);
  }
  return LLVMFuzzerMutate(data, size, largest);
}
