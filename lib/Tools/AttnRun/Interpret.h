//===- Interpret.h - runs a file through the interpreter --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_INTERPRET_H
#define ATTN_LIB_TOOLS_ATTNRUN_INTERPRET_H

#include "lib/Tools/AttnRun/Report.h"

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace attn {

/// `--device=interpreter`: takes the source to the door that the options name, runs what is there,
/// and reports the tiles visited. A check compares with the same function at the first door.
llvm::Expected<Report> runInterpreter(mlir::MLIRContext &context, const RunOptions &options);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_INTERPRET_H
