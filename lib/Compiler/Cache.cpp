//===- Cache.cpp - functions that this process compiled before --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Function.h"
#include "lib/Support/ForkGate.h"
#include <list>
#include <mutex>
#include <unordered_map>

namespace attn {

namespace {
/// A function that is being compiled or has been. Whoever finds it unfinished waits for its mutex.
struct Entry {
  std::mutex mutex;
  std::optional<CompiledFunction> function;
};

class FunctionCache {
public:
  /// The entry of a key, made the youngest one.
  std::shared_ptr<Entry> find(const std::string &key) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = places.find(key);
    if (found != places.end()) {
      entries.splice(entries.begin(), entries, found->second);
      return entries.front().second;
    }
    entries.emplace_front(key, std::make_shared<Entry>());
    places[key] = entries.begin();
    if (entries.size() > kCapacity) {
      // Code that is still called stays: callers hold it too.
      places.erase(entries.back().first);
      entries.pop_back();
    }
    return entries.front().second;
  }

  void clear() {
    std::lock_guard<std::mutex> lock(mutex);
    places.clear();
    entries.clear();
  }

private:
  static constexpr size_t kCapacity = 256;
  using Entries = std::list<std::pair<std::string, std::shared_ptr<Entry>>>;
  std::mutex mutex;
  Entries entries;
  std::unordered_map<std::string, Entries::iterator> places;
};
} // namespace

static std::string getKey(std::string_view source, const CompileOptions &options) {
  std::string key;
  key.reserve(source.size() + 96);
  for (int64_t number :
       {int64_t(options.device), int64_t(options.ordinal), int64_t(options.threads), options.blockM,
        options.blockN, options.splits, options.fixedSplit, int64_t(options.fused), options.pack,
        options.slack, options.reserve, options.search, int64_t(options.balance),
        int64_t(options.lazy && options.device == DeviceKind::CUDA), int64_t(options.cache)}) {
    key += std::to_string(number);
    key += '\0';
  }
  for (const std::string *text : {&options.target, &options.cpu, &options.way, &options.stay,
                                  &options.entry, &options.cacheDirectory}) {
    key += *text;
    key += '\0';
  }
  return key += source;
}

/// Never destroyed: other threads may still compile while the process ends.
static FunctionCache &getFunctionCache() {
  static FunctionCache &cache = *new FunctionCache;
  return cache;
}

void forgetFunctions() { getFunctionCache().clear(); }

static Result<CompiledFunction> compileOnce(std::string_view source,
                                            const CompileOptions &options) {
  std::shared_ptr<Entry> entry = getFunctionCache().find(getKey(source, options));
  std::lock_guard<std::mutex> lock(entry->mutex);
  if (entry->function)
    return *entry->function;
  Result<CompiledFunction> function = options.device == DeviceKind::CUDA
                                          ? compileForGPU(source, options)
                                          : compileForHost(source, options);
  if (function)
    entry->function = *function;
  return function;
}

Result<CompiledFunction> compile(std::string_view source, const CompileOptions &options) {
  ForkGate gate;
  if (options.device != DeviceKind::CUDA || options.ordinal >= 0)
    return compileOnce(source, options);
  // Which GPU that is depends on the thread, so it is no part of a key.
  Result<int> ordinal = resolveOrdinal(options);
  if (!ordinal)
    return ordinal.takeStatus();
  CompileOptions named = options;
  named.ordinal = *ordinal;
  return compileOnce(source, named);
}

Result<CompiledFunction> compile(const AttentionSpec &spec, const CompileOptions &options) {
  if (Status status = checkSpec(spec); !status.ok())
    return status;
  return compile(getSource(spec), options);
}

} // namespace attn
