//===- GuardedMemory.h - arrays with forbidden memory around them ---------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_GUARDEDMEMORY_H
#define ATTN_TEST_UNIT_GUARDEDMEMORY_H

#include <cassert>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace attn::test {

/// An array between two pages of memory that nobody may touch: it ends where the second begins, or
/// begins where the first ends. On the other side of it are guard words, which isIntact looks at.
template <typename T> class Guarded {
public:
  explicit Guarded(size_t count, bool atEnd = true) : count(count) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    inner = (count * sizeof(T) + kGuard + page - 1) / page * page;
    whole = inner + 2 * page;
    void *memory = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED && "expected memory");
    base = static_cast<char *>(memory);
    first = base + page;
    int status = mprotect(first, inner, PROT_READ | PROT_WRITE);
    assert(status == 0 && "expected memory of this process");
    (void)status;
    std::memset(first, kFill, inner);
    start = reinterpret_cast<T *>(atEnd ? first + inner - count * sizeof(T) : first);
  }
  ~Guarded() { munmap(base, whole); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;

  T *data() { return start; }
  const T *data() const { return start; }
  size_t size() const { return count; }
  T &operator[](size_t i) { return start[i]; }
  const T &operator[](size_t i) const { return start[i]; }
  T *begin() { return start; }
  T *end() { return start + count; }

  /// Whether nobody wrote beside the array.
  bool isIntact() const {
    const char *from = reinterpret_cast<const char *>(start), *to = from + count * sizeof(T);
    for (const char *at = first; at < first + inner; ++at)
      if ((at < from || at >= to) && *at != kFill)
        return false;
    return true;
  }

private:
  static constexpr size_t kGuard = 256;
  static constexpr char kFill = 0x5a;
  size_t count, inner, whole;
  char *base, *first;
  T *start;
};

} // namespace attn::test

#endif // ATTN_TEST_UNIT_GUARDEDMEMORY_H
