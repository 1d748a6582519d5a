//===- Source.h - the text that operators take, and the functions written from it ----------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TORCH_OPERATORS_SOURCE_H
#define ATTN_TORCH_OPERATORS_SOURCE_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attn_torch {
/// Which gradients one kernel computes. `wanted` of query, key, value and sink, then of each
/// captured tensor.
struct Gradients {
  std::vector<bool> wanted;
  /// Whether lse has a gradient too, and whether its low part is read.
  bool hasLseGradient = false, hasLow = false;

  bool operator==(const Gradients &) const = default;
};

/// The pieces of a source: the last comment of what python/attn/_written.py writes. Functions are
/// written as python/attn/_source.py writes them, to the letter: programs that use both compile
/// each once.
class Source {
public:
  static constexpr size_t kNumNamed = 4;

  /// Throws std::invalid_argument where the text does not read.
  explicit Source(const std::string &text);

  /// Of (q, k, v, scale or not, sink or not, captured tensors) -> output, lse, lse_low or not.
  std::string writeForward(bool hasLow) const;
  /// Of the same arguments, then output, lse, lse_low or not, d_output and d_lse or not.
  std::string writeGradient(const Gradients &gradients) const;
  /// Whether gradients read lse_low. GPUs read it only where there is a score function.
  bool readsLow(bool isOnCPU) const;

  /// "f32", of q, k and v, and of the output.
  std::string type, outputType;
  int64_t headDim, valueDim;
  bool hasScale, hasSink;
  /// Options of the compiler, without the device.
  std::vector<std::pair<std::string, std::string>> options;
  /// Of each captured tensor, the least extents that it must have.
  std::vector<std::vector<int64_t>> least;

private:
  std::string writeFunction(const std::string &name, const std::vector<std::string> &last,
                            const std::string &operation, const std::string &types,
                            const std::string &names, const std::string &results,
                            const std::vector<bool> &readInside) const;
  std::string writeVariants() const;
  std::string writeOptional() const;
  std::string queryType() const;
  std::string valueType() const;
  std::string resultType() const;
  std::string captureType(size_t index) const;
  std::string captureName(size_t index) const;

  /// Empty for none.
  std::string causal;
  std::optional<std::pair<int64_t, int64_t>> window;
  double dropout;
  /// The words of #attn.positions; empty for none.
  std::vector<std::string> positions;
  std::vector<std::string> captures, before, regions;
};
} // namespace attn_torch

#endif // ATTN_TORCH_OPERATORS_SOURCE_H
