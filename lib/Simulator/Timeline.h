//===- Timeline.h - the spans of a block in time ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_TIMELINE_H
#define ATTN_LIB_SIMULATOR_TIMELINE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace attn::sim {

/// One block's schedule: spans of time on tracks.
struct Timeline {
  struct Span {
    std::string track, name;
    /// In cycles.
    double begin, end;
    std::string location;
  };
  std::vector<Span> spans;
  std::string title;
  /// Names of the kernel's first arguments, for copies of them; the others have numbers.
  std::vector<std::string> arguments;
  double clockGHz = 1;

  std::string getArgument(unsigned index) const;
  /// The trace format of Chrome and Perfetto; microseconds of the simulated clock.
  void printTrace(llvm::raw_ostream &os) const;
  /// A picture, tracks below each other. Long timelines are cut after `maxCycles`, if not 0.
  void printPicture(llvm::raw_ostream &os, double maxCycles = 0) const;
  /// By the ending of the name: .json or .svg.
  llvm::Error write(llvm::StringRef path) const;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_TIMELINE_H
