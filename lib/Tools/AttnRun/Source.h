//===- Source.h - the function to run and its names -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_SOURCE_H
#define ATTN_LIB_TOOLS_ATTNRUN_SOURCE_H

#include "lib/Analysis/Extents/FindExtents.h"
#include "lib/Source/Signature.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace attn {

/// Facts about an argument or result besides its type.
struct ValueFacts {
  std::string name;
  ExtentDims dims;
  /// Elements do not decrease along the last dimension.
  bool isSorted = false;
};

/// A parsed file.
struct Source {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelSignature signature;
  llvm::SmallVector<ValueFacts> arguments, results;
  FunctionExtents extents;
};

/// Parses a file and finds its entry, which returns gradients too if asked for them. Names are the
/// attribute `attn.name` or else the SSA name in the text.
llvm::Expected<Source> readSource(mlir::MLIRContext &context, llvm::StringRef path,
                                  llvm::StringRef entry, bool withGradients);

/// The same of a text that somebody has read from `path`.
llvm::Expected<Source> parseSource(mlir::MLIRContext &context,
                                   std::unique_ptr<llvm::MemoryBuffer> buffer, llvm::StringRef path,
                                   llvm::StringRef entry, bool withGradients);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_SOURCE_H
