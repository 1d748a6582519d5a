//===- JSON.h - the parts of a plan as JSON ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Inside lib/Plan: readers name the path of what is wrong.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_JSON_H
#define ATTN_LIB_PLAN_JSON_H

#include "lib/Plan/CallRules.h"
#include "lib/Plan/KernelPlan.h"
#include "llvm/Support/JSON.h"

namespace attn {

llvm::json::Value toValue(const KernelPlan &plan);
bool fromValue(const llvm::json::Value &value, KernelPlan &plan, llvm::json::Path path);

llvm::json::Array toArray(const WayConditions &when);
bool fromValue(const llvm::json::Value &value, WayPlan &way, llvm::json::Path path);

llvm::json::Value toValue(const CallRules &rules);
bool fromValue(const llvm::json::Value &value, CallRules &rules, llvm::json::Path path);

} // namespace attn

#endif // ATTN_LIB_PLAN_JSON_H
