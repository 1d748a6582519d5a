//===- Tune.h - the sizes that a search tries ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_TUNE_H
#define ATTN_LIB_TOOLS_ATTNRUN_TUNE_H

#include "lib/Tools/AttnRun/Options.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn {

/// Rows and keys of a tile; zeros are the target's rule. Blocks that do not `stay` do what that
/// rule, or the command line, says.
struct TileSizes {
  int64_t blockM = 0, blockN = 0;
  bool stay = false;
};

/// The result of a search.
struct Tuning {
  TileSizes sizes;
  /// Milliseconds with these sizes, and with the rule's.
  double fastest = 0, rule = 0;
  unsigned numTried = 0, numRefused = 0;
};

/// Times all sizes of the device by `measure`, which gives milliseconds or refuses, then, with
/// `letStay`, the three fastest with blocks that stay; shows how far it is by `progress`. The
/// rule's hold where nothing is faster by 1 %. Fails where the rule does.
llvm::Expected<Tuning> tune(Device device, bool letStay,
                            llvm::function_ref<llvm::Expected<double>(TileSizes)> measure,
                            llvm::function_ref<void(unsigned done, unsigned total)> progress);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_TUNE_H
