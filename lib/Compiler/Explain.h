//===- Explain.h - listening to a compilation -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_EXPLAIN_H
#define ATTN_LIB_COMPILER_EXPLAIN_H

#include "lib/Compiler/Function.h"
#include "lib/Pipelines/VisitDoor.h"

namespace attn {

/// Turns remarks on and shows them to `observe` at every door. Without an observer there is nothing
/// to visit, and remarks stay off.
DoorVisitor observeDoors(mlir::MLIRContext &context, DoorObserver observe);

/// A remark as a comment, "// name        text".
void printRemark(llvm::raw_ostream &os, const PassRemark &remark);

/// The error of explain() where `door` is none of the `known` doors.
Status refuseDoor(std::string_view door, std::string_view known);

/// explain() for a GPU, which need not be there.
Result<std::string> explainForGPU(std::string_view source, const CompileOptions &options,
                                  std::string_view until, std::string_view way);

} // namespace attn

#endif // ATTN_LIB_COMPILER_EXPLAIN_H
