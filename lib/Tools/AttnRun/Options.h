//===- Options.h - the command line of attn-run -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_OPTIONS_H
#define ATTN_LIB_TOOLS_ATTNRUN_OPTIONS_H

#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/CPU/Jit.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace attn {

/// How attn-run counts floating-point operations: 2 * (D + Dv) for each pair (m, n) of every head.
enum class FlopCount {
  /// Pairs that the mask keeps; all of them where that hangs on tensors or a region.
  Kept,
  Full,
  /// Pairs with n <= m.
  CausalTopLeft,
  /// Pairs with n <= m + N - M.
  CausalBottomRight
};

enum class Device { CPU, CUDA, Interpreter, Simulator };

struct RunOptions {
  std::string file, entry;
  /// Whether the function returns the gradients of its attentions too.
  bool withGradients = false;
  /// Dimension letters, and `name.i` for dimension i of a tensor.
  llvm::StringMap<int64_t> shape;
  /// By argument name: a path, a number, `LOW..HIGH`, `sorted`, `zeros` or `normal`.
  llvm::StringMap<std::string> inputs;
  /// By result name: a path.
  llvm::StringMap<std::string> outputs;
  /// Rows before heads in memory: (B, M, H, D) strides under a (B, H, M, D) shape.
  bool isRowsFirst = false;
  uint64_t seed = 0;
  bool check = false, bench = false, tune = false, json = false, showProgress = false;
  double benchMs = 500;
  std::optional<double> tolerance;
  FlopCount flops = FlopCount::Kept;
  Device device = Device::CPU;
  /// Of the interpreter: where to stop lowering (nothing: the source as it is), and whether to
  /// count tiles only.
  std::optional<Room> until = Room::Online;
  bool count = false;
  /// Of the simulator: how many seeds of random times, only a prediction, and files for the
  /// timeline.
  unsigned simSeeds = 8;
  bool predict = false;
  std::vector<std::string> timelines;
  /// The words of the schedule that the command says.
  Overrides schedule;
  /// The kind of GPU, by its name; empty for the device's.
  std::string target, way = "auto";
  bool fused = true;
  JitOptions jit;
};

/// Parses the command line. Nothing when --help or --version has been answered.
llvm::Expected<std::optional<RunOptions>> parseCommandLine(int argc, const char *const *argv);

/// Parses `B=1,H=8,…` into `shape`.
llvm::Error parseShape(llvm::StringRef text, llvm::StringMap<int64_t> &shape);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_OPTIONS_H
