//===- Rng.h - choices that a seed reproduces -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_RNG_H
#define ATTN_TEST_FUZZ_RNG_H

#include <cstdint>

namespace attn::fuzz {

/// SplitMix64: the same choices on every machine, which the standard's distributions are not.
class Rng {
public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : state(seed * 0x9e3779b97f4a7c15 + stream) {
    next();
    state ^= stream * 0xd1342543de82ef95;
  }

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Below `count`, which is above 0.
  uint64_t below(uint64_t count) { return next() % count; }
  bool oneIn(uint64_t count) { return below(count) == 0; }

  /// An element of a range that is not empty.
  template <typename Range> decltype(auto) pick(Range &&range) {
    return range[below(range.size())];
  }

private:
  uint64_t state;
};

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_RNG_H
