//===- Memory.cpp - how much memory there is --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Memory.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <limits>

using namespace llvm;

namespace attn {

uint64_t getAvailableMemory() {
  uint64_t available = std::numeric_limits<uint64_t>::max();
  // Files of /proc and /sys have no size: they must be read as streams.
  if (auto info = MemoryBuffer::getFileAsStream("/proc/meminfo")) {
    StringRef rest = (*info)->getBuffer().split("MemAvailable:").second.ltrim();
    uint64_t kibibytes = 0;
    if (!rest.consumeInteger(10, kibibytes))
      available = kibibytes * 1024;
  }
  if (auto limit = MemoryBuffer::getFileAsStream("/sys/fs/cgroup/memory.max")) {
    uint64_t bytes = 0;
    if (!(*limit)->getBuffer().trim().getAsInteger(10, bytes))
      available = std::min(available, bytes);
  }
  return available;
}

std::string formatBytes(uint64_t bytes) {
  static constexpr StringLiteral units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  std::string text;
  raw_string_ostream(text) << format(unit ? "%.1f " : "%.0f ", value) << units[unit];
  return text;
}

Error checkAvailableMemory(uint64_t bytes, StringRef what) {
  uint64_t available = getAvailableMemory();
  if (bytes <= available)
    return Error::success();
  return createStringError("expected at most " + formatBytes(available) +
                           " (the memory available) for " + what + ", got " + formatBytes(bytes));
}

} // namespace attn
