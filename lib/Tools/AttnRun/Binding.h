//===- Binding.h - extents and inputs of one run ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_BINDING_H
#define ATTN_LIB_TOOLS_ATTNRUN_BINDING_H

#include "lib/Tools/AttnRun/Options.h"
#include "lib/Tools/AttnRun/Source.h"
#include <map>
#include <vector>

namespace attn {

/// The extents that a run has settled on: of the letters, and of every tensor.
struct Binding {
  std::map<std::string, int64_t> letters;
  /// Empty for scalars.
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>> arguments, results;

  std::optional<int64_t> get(llvm::StringRef letter) const;
  /// The floating-point operations that count as work, if this is an attention. `kept` is the
  /// number of pairs that its mask keeps, where that is known.
  std::optional<double> countFlops(FlopCount count, std::optional<double> kept) const;
  /// Bytes of the arguments and results, and of their f64 copies if there is to be a check.
  llvm::Error checkMemory(const KernelSignature &signature, bool withReference) const;
};

/// Takes a source, if it is one, and extents from the types, the files given as inputs and --shape,
/// which must agree.
llvm::Error bind(llvm::Expected<Source> found, const RunOptions &options, Source &source,
                 Binding &binding);

/// The value of one argument.
struct ArgumentValue {
  bool isScalar = false;
  double scalar = 0;
  Array array;
};

/// Reads or draws the arguments.
llvm::Expected<std::vector<ArgumentValue>> makeInputs(const Source &source, const Binding &binding,
                                                      const RunOptions &options);

/// The order of dimensions in memory that --layout asks for; empty for row-major.
llvm::SmallVector<unsigned> getMemoryOrder(const RunOptions &options, size_t rank);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_BINDING_H
