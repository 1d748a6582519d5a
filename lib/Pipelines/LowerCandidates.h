//===- LowerCandidates.h - lets the rule count registers of what it chooses -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_LOWERCANDIDATES_H
#define ATTN_LIB_PIPELINES_LOWERCANDIDATES_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Gives the Attn dialect a CandidateInterface that lowers candidates by this house's own passes.
void registerCandidates(mlir::DialectRegistry &registry);

} // namespace attn

#endif // ATTN_LIB_PIPELINES_LOWERCANDIDATES_H
