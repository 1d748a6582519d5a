//===- Ptxas.h - the assembler of PTX, where one is installed --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_PTXAS_H
#define ATTN_LIB_COMPILER_PTXAS_H

#include "attn/Status.h"
#include <string>

namespace attn {

/// Machine code, and the log of `ptxas -v`.
struct PtxasOutput {
  std::string machineCode, log;
};

/// Runs the ptxas of $PATH for the target that the text names.
Result<PtxasOutput> runPtxas(const std::string &ptx);

} // namespace attn

#endif // ATTN_LIB_COMPILER_PTXAS_H
