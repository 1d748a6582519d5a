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
///
/// The plan of an image has kernels. That of a function whose ways are compiled when calls take
/// them has ways, and each way is an image of its own.
struct FunctionPlan {
  /// Those of one PTX module, in launch order.
  std::vector<KernelPlan> kernels;
  /// The rules that calls are checked against; kernels by hand have none.
  std::optional<CallRules> rules;
  /// In the order in which a call tries them. The last is for all calls.
  std::vector<WayPlan> ways = {}; // NOLINT(readability-redundant-member-init)

  bool operator==(const FunctionPlan &) const = default;
};

/// The version of the JSON form. 2 added scratch; 3 zeroed scratch, factors of multiprocessors,
/// ranges of extents and programmatic launches; 4 multiples of sizes, parts and ranges of
/// quotients; 5 ranges of parts; 6 names and several conditions of ways, and rates of memory.
inline constexpr int64_t kPlanVersion = 6;

/// {"version": 6, "kernels": [...], "function": {...}}, indented.
std::string writePlan(const FunctionPlan &plan);

/// Reads what writePlan wrote. The error names the path of the field that is missing or wrong.
llvm::Expected<FunctionPlan> readPlan(llvm::StringRef text);

} // namespace attn

#endif // ATTN_LIB_PLAN_PLAN_H
