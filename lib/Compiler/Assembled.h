//===- Assembled.h - what an assembler makes of PTX -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_ASSEMBLED_H
#define ATTN_LIB_COMPILER_ASSEMBLED_H

#include "attn/Compiler.h"

namespace attn {

/// Registers, spills and warnings of each kernel, as comments: by the driver of the GPU that the
/// options name; where there is none by a ptxas in $PATH; otherwise a line that says that neither
/// is there.
std::string describeAssembled(const KernelImage &image, const CompileOptions &options);

} // namespace attn

#endif // ATTN_LIB_COMPILER_ASSEMBLED_H
