//===- Driver.h - the CUDA driver, opened when first needed -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_DRIVER_H
#define ATTN_LIB_RUNTIME_DRIVER_H

#include "attn/Status.h"
#include "lib/Runtime/CudaTypes.h"
#include <string>
#include <string_view>

namespace attn {

/// An initialised driver; its functions are called as driver.MemAlloc(...).
struct Driver : cuda::Functions {
  /// 1000 * major + 10 * minor of the CUDA version that the driver implements.
  int version = 0;

  /// The status of a call that returned `code`; Ok for Success. `what` says what was tried, as in
  /// "allocate 4 bytes": the message becomes "failed to allocate 4 bytes: <the driver's words>".
  Status check(cuda::Code code, std::string_view what) const;
};

/// The driver of this process. The first call opens and initialises it; every later one gets the
/// same answer, errors included. From any thread. The library is never closed.
Result<const Driver *> getDriver();

/// For tests: the next getDriver() opens this library in place of libcuda.so.1. A module that was
/// loaded through an earlier driver keeps using that driver.
void overrideDriverLibrary(std::string path);

/// "12.4" for 12040.
std::string formatCudaVersion(int version);

/// Makes a context current while it lives. Costs one call when it is current already.
class ContextScope {
public:
  ContextScope(const Driver &driver, cuda::Context context);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;
  ContextScope &operator=(const ContextScope &) = delete;

  /// Success when the context is current now.
  cuda::Code getCode() const { return code; }

private:
  const Driver &driver;
  bool pushed = false;
  cuda::Code code;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_DRIVER_H
