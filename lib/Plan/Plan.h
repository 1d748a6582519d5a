//===- Plan.h - how to call a compiled function -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_PLAN_H
#define ATTN_LIB_PLAN_PLAN_H

#include "lib/Plan/CallRules.h"
#include "lib/Plan/KernelPlan.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <vector>

namespace attn {

/// Everything about a function but its code: what the compiler hands to the cache and to the
/// runtime. Written once, when the PTX is, and read once, when that is loaded.
struct FunctionPlan {
  /// Those of one PTX module, in launch order.
  std::vector<KernelPlan> kernels;
  /// The rules that calls are checked against; kernels by hand have none.
  std::optional<CallRules> rules;

  bool operator==(const FunctionPlan &) const = default;
};

/// The version of the JSON form. 2 added scratch; 3 zeroed scratch, factors of multiprocessors,
/// ranges of extents and programmatic launches; 4 multiples of sizes, parts and ranges of
/// quotients; 5 ranges of parts.
inline constexpr int64_t kPlanVersion = 5;

/// {"version": 5, "kernels": [...], "function": {...}}, indented.
std::string writePlan(const FunctionPlan &plan);

/// Reads what writePlan wrote. The error names the path of the field that is missing or wrong.
llvm::Expected<FunctionPlan> readPlan(llvm::StringRef text);

} // namespace attn

#endif // ATTN_LIB_PLAN_PLAN_H
