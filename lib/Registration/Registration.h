//===- Registration.h - the dialects and passes there are -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_REGISTRATION_REGISTRATION_H
#define ATTN_LIB_REGISTRATION_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace attn {

/// The dialects of rooms 1 to 3 and of the CPU path, with their interfaces for tiling,
/// bufferization and translation.
void registerDialects(mlir::DialectRegistry &registry);

/// Our passes and pipelines, and the upstream passes that a hand-written pipeline is likely to
/// need.
void registerPasses();

} // namespace attn

#endif // ATTN_LIB_REGISTRATION_REGISTRATION_H
