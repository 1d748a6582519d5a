//===- DiskCache.cpp - images of earlier processes --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/DiskCache.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <map>

using namespace llvm;

namespace attn {

/// Where the caches that this thread asks put what they have to say; null: nowhere.
static thread_local std::vector<std::string> *remarkSink = nullptr;

static std::string getEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

static bool isOnDisk(const CompileOptions &options) {
  return options.cache && getEnvironment("ATTN_CACHE") != "0";
}

/// Kernels that came with the library lie beside it. A build has none: `make wheel` puts them there
/// (decision 0082). Empty without a disk, where everything is compiled.
static std::string findShippedFolder(const CompileOptions &options, StringRef library) {
  if (!isOnDisk(options) || !sys::path::is_absolute(library))
    return "";
  SmallString<128> folder = sys::path::parent_path(library);
  sys::path::append(folder, "kernels");
  return std::string(folder);
}

/// One cache for each place. Its memory is small, for whole functions are kept above it.
static KernelCache &getKernelCache(const CompileOptions &options) {
  CacheOptions cache;
  cache.onDisk = isOnDisk(options);
  cache.directory = options.cacheDirectory;
  if (cache.directory.empty())
    cache.directory = getEnvironment("ATTN_CACHE_DIR");
  cache.remark = [](std::string_view text) {
    if (remarkSink)
      remarkSink->emplace_back(text);
  };
  static std::mutex mutex;
  static auto &caches = *new std::map<std::pair<bool, std::string>, std::unique_ptr<KernelCache>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<KernelCache> &found = caches[{cache.onDisk, cache.directory}];
  if (!found) {
    std::string library = getLibraryPath();
    found = std::make_unique<KernelCache>(cache, findShippedFolder(options, library), library);
  }
  return *found;
}

CacheKey getDiskKey(std::string_view source, StringRef options, StringRef target) {
  std::string compiler = std::string(getVersion()) + " " LLVM_VERSION_STRING " " + getBuildId();
  // Nothing in an entry was made by a driver, so its version changes nothing.
  return computeCacheKey({StringRef(source), compiler, options, target, 0});
}

CacheKey getImageKey(std::string_view source, const CompileOptions &options, const Machine &machine,
                     const EmitRequest &request) {
  std::string text =
      formatv("{0} fused={1} pack={2} way={3} entry={4}", getOverrides(options).str(),
              options.fused, options.pack, options.way, options.entry);
  if (options.reserve > 0)
    text += formatv(" reserve={0}", options.reserve);
  if (request.what == EmitRequest::What::Way)
    text += " only=" + request.way;
  return getDiskKey(source, text, (machine.name + machine.ptx).str());
}

Result<KernelCache::Image> findImage(const CacheKey &key, const CompileOptions &options,
                                     FunctionInfo &info, KernelCache::CompileFn compile) {
  // A cache that cannot be used says so when it is made.
  remarkSink = &info.remarks;
  bool isCompiled = false;
  Result<KernelCache::Image> image =
      getKernelCache(options).getOrCompile(key, [&]() -> Result<KernelImage> {
        isCompiled = true;
        return compile();
      });
  remarkSink = nullptr;
  info.isFromDisk = image && !isCompiled && isOnDisk(options);
  return image;
}

} // namespace attn
