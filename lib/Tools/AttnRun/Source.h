//===- Source.h - the function to run and its names -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTNRUN_SOURCE_H
#define ATTN_TOOLS_ATTNRUN_SOURCE_H

#include "lib/Target/CPU/Compile.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace attn {

/// The letters of one tensor's dimensions, "?" where unknown. "MN" stands for max(M, N): a tensor
/// that is read at rows and at columns.
using DimLetters = llvm::SmallVector<std::string, 4>;

/// What is known of an argument or result beside its type.
struct ValueFacts {
  std::string name;
  DimLetters dims;
  /// Elements do not decrease along the last dimension.
  bool isSorted = false;
};

/// A parsed file.
struct Source {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelSignature signature;
  llvm::SmallVector<ValueFacts> arguments, results;
};

/// Parses a file and finds its entry. Names are the attribute `attn.name` or else the SSA name in
/// the text; dimensions are the attribute `attn.dims` or else what inferDims finds.
llvm::Expected<Source> readSource(mlir::MLIRContext &context, llvm::StringRef path,
                                  llvm::StringRef entry);

/// Finds the dimensions of arguments and results by their use in `attn.attention`, and which
/// arguments `attn.assume` calls nondecreasing.
void inferFacts(mlir::func::FuncOp function, Source &source);

} // namespace attn

#endif // ATTN_TOOLS_ATTNRUN_SOURCE_H
