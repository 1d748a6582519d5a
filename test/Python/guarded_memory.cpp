//===- guarded_memory.cpp - PyTorch's memory of the CPU, between words that nobody may write --===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// An allocator of PyTorch. Whoever asks PyTorch for memory gets it from here: the package, the
// operators in C++, code of Inductor and autograd. guarded_memory.py builds and loads it.
//
//===----------------------------------------------------------------------------------------===//

#include <c10/core/CPUAllocator.h>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

namespace {

// A multiple of the 64 bytes to which PyTorch aligns.
constexpr size_t kGuard = 1024;
constexpr int kPattern = 0xa5;
/// NaN of every floating-point type: what nobody writes shows.
constexpr int kUnwritten = 0xff;

struct Blocks {
  std::mutex mutex;
  /// Sizes, by address.
  std::unordered_map<void *, size_t> sizes;
  /// Found broken when it was given back.
  int64_t numBroken = 0;
};

/// Never destroyed: tensors outlive static variables.
Blocks &getBlocks() {
  static Blocks &blocks = *new Blocks;
  return blocks;
}

bool isWhole(const void *data, size_t size) {
  // memcmp, since this looks at each block after each test.
  static const auto *pattern = [] {
    auto *bytes = static_cast<unsigned char *>(std::malloc(kGuard));
    std::memset(bytes, kPattern, kGuard);
    return bytes;
  }();
  const auto *begin = static_cast<const unsigned char *>(data);
  return std::memcmp(begin - kGuard, pattern, kGuard) == 0 &&
         std::memcmp(begin + size, pattern, kGuard) == 0;
}

void mend(void *data, size_t size) {
  auto *begin = static_cast<unsigned char *>(data);
  std::memset(begin - kGuard, kPattern, kGuard);
  std::memset(begin + size, kPattern, kGuard);
}

void release(void *data) {
  if (!data)
    return;
  Blocks &blocks = getBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  auto block = blocks.sizes.find(data);
  blocks.numBroken += !isWhole(data, block->second);
  blocks.sizes.erase(block);
  std::free(static_cast<unsigned char *>(data) - kGuard);
}

class Allocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t size) override {
    c10::Device cpu(c10::DeviceType::CPU);
    // As PyTorch's own does.
    if (!size)
      return {nullptr, nullptr, &release, cpu};
    void *memory = nullptr;
    if (size > SIZE_MAX - 2 * kGuard || posix_memalign(&memory, 64, size + 2 * kGuard))
      throw std::bad_alloc();
    void *data = static_cast<unsigned char *>(memory) + kGuard;
    std::memset(data, kUnwritten, size);
    mend(data, size);
    Blocks &blocks = getBlocks();
    std::lock_guard<std::mutex> lock(blocks.mutex);
    blocks.sizes[data] = size;
    return {data, data, &release, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void *to, const void *from, size_t size) const override {
    default_copy_data(to, from, size);
  }
};

} // namespace

extern "C" {

void guard_install() { c10::SetCPUAllocator(new Allocator, /*priority=*/255); }

/// How many blocks were written around since the last call. They are mended, so that one test
/// fails.
int64_t guard_check() {
  Blocks &blocks = getBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  int64_t numBroken = blocks.numBroken;
  blocks.numBroken = 0;
  for (auto [data, size] : blocks.sizes) {
    if (isWhole(data, size))
      continue;
    ++numBroken;
    mend(data, size);
  }
  return numBroken;
}

/// Whether a block begins at the address.
bool guard_has(void *data) {
  Blocks &blocks = getBlocks();
  std::lock_guard<std::mutex> lock(blocks.mutex);
  return blocks.sizes.count(data);
}
}
