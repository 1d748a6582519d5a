//===- DiskCache.h - images of earlier processes ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_DISKCACHE_H
#define ATTN_LIB_COMPILER_DISKCACHE_H

#include "lib/Compiler/Function.h"
#include "lib/Machine/Machine.h"
#include "lib/Runtime/KernelCache.h"

namespace attn {

/// The key of an image. `options` names all that change it besides the source, `target` what it is
/// made for.
CacheKey getDiskKey(std::string_view source, llvm::StringRef options, llvm::StringRef target);

/// The key of what emitImage makes for a GPU.
CacheKey getImageKey(std::string_view source, const CompileOptions &options, const Machine &machine,
                     const EmitRequest &request);

/// The image where the options keep images, or what `compile` makes, kept there. `info` gets what
/// was repaired on the way and whether the image was on disk.
Result<KernelCache::Image> findImage(const CacheKey &key, const CompileOptions &options,
                                     FunctionInfo &info, KernelCache::CompileFn compile);

} // namespace attn

#endif // ATTN_LIB_COMPILER_DISKCACHE_H
