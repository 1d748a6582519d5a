//===- HostInfo.h - the processor that kernels are compiled for -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_CPU_HOSTINFO_H
#define ATTN_LIB_TARGET_CPU_HOSTINFO_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace attn {

struct HostInfo {
  std::string triple;
  /// In LLVM's spelling: "znver4", "x86-64-v3".
  std::string cpu;
  /// "+avx2,+fma,-avx512f"; empty when the name of the CPU says everything.
  std::string features;
  /// f32 elements of one vector register: 16 with AVX-512, 8 with AVX2 and FMA, otherwise 4.
  unsigned f32Lanes = 4;
  /// Dot products of bf16 pairs (AVX512-BF16).
  bool hasBF16Dot = false;
  /// Conversions between f16 and f32 in hardware (F16C or AVX-512).
  bool hasF16Convert = false;
  /// Physical cores that this process may use.
  unsigned numThreads = 1;
};

/// Changes to what is detected, for tests and for reproducing the code of another machine.
struct HostOverride {
  std::optional<std::string> cpu;
  std::optional<std::string> features;
  std::optional<unsigned> numThreads;
  /// The code will not run here: the CPU may have instructions that this machine lacks.
  bool isForElsewhere = false;
};

/// Describes this machine, detected once. An override that names an unknown CPU, or one with
/// vector instructions that this machine lacks (unless `isForElsewhere`), is an error.
llvm::Expected<HostInfo> getHostInfo(const HostOverride &overrides = {});

} // namespace attn

#endif // ATTN_LIB_TARGET_CPU_HOSTINFO_H
