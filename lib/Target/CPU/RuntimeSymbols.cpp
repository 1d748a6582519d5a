//===- RuntimeSymbols.cpp - what generated code calls by name ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/RuntimeSymbols.h"
#include "lib/Support/Memory.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace attn {

/// Generated code does not test the result of an allocation, and Linux grants more than there is:
/// either way the process would die without a word. There is nobody to return an error to.
static void *allocateOrExit(size_t alignment, size_t size) {
  // Asking the system costs microseconds, which only large blocks can afford.
  constexpr size_t large = size_t(256) << 20;
  Error error = size < large ? Error::success() : checkAvailableMemory(size, "a kernel's buffer");
  if (!error) {
    size_t padded = (size + alignment) / alignment * alignment;
    if (void *pointer = padded > size ? std::aligned_alloc(alignment, padded) : nullptr)
      return pointer;
    error = createStringError("expected " + formatBytes(size) +
                              " for a kernel's buffer, got none from the system");
  }
  errs() << "error: " << toString(std::move(error)) << '\n';
  errs().flush();
  std::_Exit(1);
}

static void *allocate(size_t size) { return allocateOrExit(64, size); }
static void *allocateAligned(size_t alignment, size_t size) {
  return allocateOrExit(std::max<size_t>(alignment, 64), size);
}

/// Rounds to nearest even. Compilers' run-time libraries lack these where the processor does. A
/// bf16 is returned in the low bits of the register of a float.
template <typename T> static float truncateToBFloat(T value) {
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
  return bit_cast<float>(static_cast<uint32_t>(rounded.bitcastToAPInt().getZExtValue()));
}

namespace {
struct UnrankedMemRef {
  int64_t rank;
  int64_t *descriptor;

  char *data(int64_t elementSize) const {
    return reinterpret_cast<char *>(descriptor[1]) + descriptor[2] * elementSize;
  }
  const int64_t *sizes() const { return descriptor + 3; }
  const int64_t *strides() const { return descriptor + 3 + rank; }
};
} // namespace

static void copyDims(char *to, const char *from, int64_t elementSize, int64_t rank,
                     const int64_t *sizes, const int64_t *toStrides, const int64_t *fromStrides) {
  if (rank == 0 || (rank == 1 && *toStrides == 1 && *fromStrides == 1)) {
    std::memcpy(to, from, elementSize * (rank ? *sizes : 1));
    return;
  }
  for (int64_t i = 0; i < *sizes; ++i)
    copyDims(to + i * *toStrides * elementSize, from + i * *fromStrides * elementSize, elementSize,
             rank - 1, sizes + 1, toStrides + 1, fromStrides + 1);
}

/// The function that memref.copy calls when a layout is not contiguous.
static void copyMemRef(int64_t elementSize, UnrankedMemRef *from, UnrankedMemRef *to) {
  copyDims(to->data(elementSize), from->data(elementSize), elementSize, from->rank, from->sizes(),
           to->strides(), from->strides());
}

ArrayRef<std::pair<StringRef, void *>> getRuntimeSymbols() {
  static const std::pair<StringRef, void *> symbols[] = {
      {"attn_cpu_parallel_for", reinterpret_cast<void *>(&attn_cpu_parallel_for)},
      {"attn_cpu_threads", reinterpret_cast<void *>(&attn_cpu_threads)},
      {"malloc", reinterpret_cast<void *>(&allocate)},
      {"aligned_alloc", reinterpret_cast<void *>(&allocateAligned)},
      {"free", reinterpret_cast<void *>(&std::free)},
      {"__truncsfbf2", reinterpret_cast<void *>(&truncateToBFloat<float>)},
      {"__truncdfbf2", reinterpret_cast<void *>(&truncateToBFloat<double>)},
      {"memrefCopy", reinterpret_cast<void *>(&copyMemRef)},
  };
  return symbols;
}

} // namespace attn
