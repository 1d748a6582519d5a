//===- Program.h - the kernels of one source -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TORCH_OPERATORS_PROGRAM_H
#define ATTN_TORCH_OPERATORS_PROGRAM_H

#include "Source.h"
#include "attn-c/attn.h"
#include <list>
#include <memory>
#include <shared_mutex>

namespace attn_torch {
/// Which kernel of a source a call takes.
struct Wish {
  /// PyTorch's number of a GPU; -1 is the CPU.
  int32_t device;
  /// Of a forward kernel: whether it returns lse_low.
  bool hasLow = false;
  /// Of gradients: whether each sum is in one order, so that its bits are the same each time.
  bool isInOrder = false;
  /// None for a forward kernel.
  std::optional<Gradients> gradients;

  bool operator==(const Wish &) const = default;
};

/// A source that was read, and the kernels that calls have taken so far. Any thread may ask.
class Program {
public:
  /// Throws as `fail` does where the text does not read.
  explicit Program(const std::string &text);
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;
  ~Program();

  /// Compiled when first wanted. It lives as long as the program.
  const attn_kernel *find(const Wish &wish);

  const std::string text;
  const Source source;

private:
  attn_kernel *compile(const Wish &wish) const;

  std::shared_mutex mutex;
  /// There are few: of two devices, and of the gradients that models want.
  std::list<std::pair<Wish, attn_kernel *>> kernels;
};

/// The program of a text. The last 512 are kept: a mask per call must not fill the memory.
std::shared_ptr<Program> findProgram(const std::string &text);
/// For tests: how many are kept.
size_t countPrograms();
} // namespace attn_torch

#endif // ATTN_TORCH_OPERATORS_PROGRAM_H
