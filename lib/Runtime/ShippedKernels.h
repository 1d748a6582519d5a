//===- ShippedKernels.h - kernels that came with the library ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_SHIPPEDKERNELS_H
#define ATTN_LIB_RUNTIME_SHIPPEDKERNELS_H

#include "lib/Runtime/CacheEntry.h"
#include <functional>
#include <mutex>
#include <set>

namespace attn {

/// Entries in a folder that came with the library. They are those of the cache on disk, under the
/// same keys, and also hold machine code: a first call assembles nothing. From any thread.
///
/// An entry is code that will run, and so is the library. So a folder or an entry counts only if
/// whoever may write to it may write to the library too: it has the library's owner, or is the
/// superuser's, and no writers that the library has not. The folder is read, and never written to.
class ShippedKernels {
public:
  ShippedKernels() = default;
  /// `remark` is told once about each reason why an entry does not count.
  ShippedKernels(std::string folder, std::string library,
                 std::function<void(std::string_view)> remark);

  std::optional<KernelImage> lookup(const CacheKey &key);

private:
  void tell(const std::string &text);

  std::string folder, library;
  std::function<void(std::string_view)> remark;
  std::mutex mutex;
  std::set<std::string> told;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_SHIPPEDKERNELS_H
