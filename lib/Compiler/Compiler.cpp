//===- Compiler.cpp - compile and run ---------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "lib/Compiler/Function.h"
#include "lib/Compiler/Target.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "lib/Transforms/Attn/WayRules.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace llvm;

namespace attn {

const char *getVersion() { return ATTN_VERSION; }

//===----------------------------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------------------------===//

Status setNumThreads(unsigned count) {
  if (count > 4096)
    return {StatusCode::InvalidArgument,
            formatv("threads: expected a number from 0 to 4096, got {0}", count), ""};
  setThreadCount(count);
  return {};
}

unsigned getNumThreads() { return getThreadCount(); }

const FunctionInfo &CompiledFunction::getInfo() const { return state->info; }

/// The arguments with every scalar as a number.
static SmallVector<LaunchArgument, 16> flatten(const CallRules &rules, LaunchArguments arguments,
                                               ArrayRef<uint64_t> scalars) {
  SmallVector<LaunchArgument, 16> flat;
  for (auto [index, value] : enumerate(rules.values)) {
    if (!value.isScalar) {
      flat.push_back(arguments[index]);
    } else {
      uint64_t word = scalars.consume_front();
      flat.push_back(value.type == DataType::F32   ? LaunchArgument(bit_cast<float>(uint32_t(word)))
                     : value.type == DataType::I32 ? LaunchArgument(static_cast<int>(word))
                                                   : LaunchArgument(static_cast<int64_t>(word)));
    }
  }
  return flat;
}

/// The runtime knows arguments by number; scratch, which it adds, has no name.
static Status nameArgument(const CallRules &rules, Status status) {
  if (status.argument && status.argument->index < rules.values.size())
    status.nameArgument(rules.values[status.argument->index].name);
  return status;
}

static Status runOnGPU(const CompiledFunction::State &state, LaunchArguments arguments,
                       void *stream, Workspace workspace) {
  SmallVector<uint64_t, 16> scalars;
  Status status = checkArguments(state.rules, arguments, scalars);
  if (!status.ok())
    return status;
  status = runInSlices(state.rules, arguments, [&](LaunchArguments some) {
    // Slices share the workspace, where each leaves its own numbers.
    workspace.isPlanned &= arguments.size() == 0 || &some[0] == &arguments[0];
    if (scalars.empty())
      return state.gpu->launch(some, stream, workspace);
    SmallVector<LaunchArgument, 16> flat = flatten(state.rules, some, scalars);
    return state.gpu->launch(std::span<const LaunchArgument>(flat.data(), flat.size()), stream,
                             workspace);
  });
  return nameArgument(state.rules, std::move(status));
}

Status CompiledFunction::run(LaunchArguments arguments, void *stream, Workspace workspace) const {
  if (state->gpu)
    return runOnGPU(*state, arguments, stream, workspace);
  return runOnHost(*state, arguments);
}

Status CompiledFunction::prepare(LaunchArguments arguments) const {
  Status status = checkShapes(state->rules, arguments);
  if (!status.ok() || !state->gpu)
    return status;
  status = runInSlices(state->rules, arguments,
                       [&](LaunchArguments some) { return state->gpu->prepare(some); });
  return nameArgument(state->rules, std::move(status));
}

Status CompiledFunction::prepare() const { return state->gpu ? state->gpu->prepare() : Status(); }

Result<size_t> CompiledFunction::getWorkspaceBytes(LaunchArguments arguments) const {
  size_t most = 0;
  Status status = checkShapes(state->rules, arguments);
  if (!status.ok())
    return status;
  if (!state->gpu)
    return most;
  // Slices follow each other on a stream, so that they share the memory.
  status = runInSlices(state->rules, arguments, [&](LaunchArguments some) {
    Result<size_t> bytes = state->gpu->getWorkspaceBytes(some);
    if (bytes)
      most = std::max(most, *bytes);
    return bytes ? Status() : bytes.takeStatus();
  });
  if (!status.ok())
    return nameArgument(state->rules, std::move(status));
  return most;
}

Result<std::string> CompiledFunction::chooseWay(LaunchArguments arguments) const {
  if (Status status = checkShapes(state->rules, arguments); !status.ok())
    return status;
  if (!state->gpu)
    return std::string();
  Result<std::string> way = state->gpu->chooseWay(arguments);
  return way ? std::move(way) : nameArgument(state->rules, way.takeStatus());
}

std::vector<WayInfo> CompiledFunction::getWays() const {
  return state->gpu ? state->gpu->getWays() : std::vector<WayInfo>();
}

//===----------------------------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------------------------===//

Status checkOptions(const CompileOptions &options) {
  for (auto [name, value, least] : {std::tuple("block-m", options.blockM, int64_t(0)),
                                    std::tuple("block-n", options.blockN, int64_t(0)),
                                    std::tuple("splits", options.splits, int64_t(1)),
                                    std::tuple("fixed-split", options.fixedSplit, int64_t(0)),
                                    std::tuple("reserve", options.reserve, int64_t(0))})
    if (value < least || value > (int64_t(1) << 20))
      return {StatusCode::InvalidArgument,
              formatv("{0}: expected a number from {1} to 2^20, got {2}", name, least, value), ""};
  if (options.pack != 0 && (options.pack < 2 || options.pack > 64 || !isPowerOf2_64(options.pack)))
    return {StatusCode::InvalidArgument,
            formatv("pack: expected 0, 2, 4, 8, 16, 32 or 64, got {0}", options.pack), ""};
  if (options.search < 0 || options.search > std::numeric_limits<int32_t>::max())
    return {
        StatusCode::InvalidArgument,
        formatv("search: expected a number of rows from 0 to 2147483647, got {0}", options.search),
        ""};
  if (options.slack < -1 || options.slack > 16)
    return {StatusCode::InvalidArgument,
            formatv("slack: expected a number from 0 to 16, or -1, got {0}", options.slack), ""};
  if (!is_contained(kWays, options.way))
    return {StatusCode::InvalidArgument,
            formatv("way: expected auto, lengths, short, long, few, narrow or groups, got '{0}'",
                    options.way),
            ""};
  if (!is_contained({"auto", "on", "off"}, options.stay))
    return {StatusCode::InvalidArgument,
            formatv("stay: expected auto, on or off, got '{0}'", options.stay), ""};
  return checkTargetName(options);
}

Overrides getOverrides(const CompileOptions &options) {
  Overrides said;
  for (auto [field, value, rule] :
       {std::tuple(&Schedule::blockM, options.blockM, int64_t(0)),
        std::tuple(&Schedule::blockN, options.blockN, int64_t(0)),
        std::tuple(&Schedule::splits, options.splits, int64_t(1)),
        std::tuple(&Schedule::fixedSplit, options.fixedSplit, int64_t(0)),
        std::tuple(&Schedule::slack, options.slack, int64_t(-1))})
    if (value != rule)
      said.set(field, value);
  if (options.balance)
    said.set(&Schedule::balance, true);
  if (options.stay != "auto")
    said.setStay(options.stay == "on");
  // Its blocks would take the multiprocessors that those that stay leave.
  if (options.reserve > 0)
    said.set(&Schedule::tail, 0);
  return said;
}

} // namespace attn
