//===- Ship.h - kernels that come with the library -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_SHIP_H
#define ATTN_LIB_COMPILER_SHIP_H

#include "attn/Compiler.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace attn {

/// Writes entries of the cache into `folder`, from which a library of the same build takes them
/// (ShippedKernels). They are the entries of calls of this function that take the ways that `wants`
/// names; the last way, which is for all calls, is always there. Machine code is by the ptxas of
/// $PATH, and no GPU need be there. Returns the number of entries.
Result<unsigned> shipKernels(std::string_view source, const CompileOptions &options,
                             const std::string &folder,
                             llvm::function_ref<bool(llvm::StringRef way)> wants);

} // namespace attn

#endif // ATTN_LIB_COMPILER_SHIP_H
