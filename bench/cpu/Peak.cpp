//===- Peak.cpp - the rate of fused multiply-adds of this machine --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <chrono>
#include <immintrin.h>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

static double seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Twelve independent chains hide the latency of the two multiply-add pipes.
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
constexpr long kIterations = 20'000'000;

/// Floating-point operations per second of one thread.
__attribute__((target("avx512f"))) static double runF32() {
  __m512 a = _mm512_set1_ps(1.0f + 1e-7f), b = _mm512_set1_ps(1e-9f);
#define DECLARE(i) __m512 c##i = _mm512_set1_ps(float(i));
  CHAINS(DECLARE)
#undef DECLARE
  auto start = Clock::now();
  for (long i = 0; i < kIterations; ++i) {
#define STEP(i)                                                                                    \
  c##i = _mm512_fmadd_ps(c##i, a, b);                                                              \
  asm volatile("" : "+v"(c##i));
    CHAINS(STEP)
#undef STEP
  }
  return double(kIterations) * 12 * 16 * 2 / seconds(start);
}

__attribute__((target("avx512f,avx512bf16"))) static double runBF16() {
  __m512bh a = (__m512bh)_mm512_set1_epi16(0x3f80), b = (__m512bh)_mm512_set1_epi16(0x3c00);
#define DECLARE(i) __m512 c##i = _mm512_set1_ps(float(i));
  CHAINS(DECLARE)
#undef DECLARE
  auto start = Clock::now();
  for (long i = 0; i < kIterations; ++i) {
#define STEP(i)                                                                                    \
  c##i = _mm512_dpbf16_ps(c##i, a, b);                                                             \
  asm volatile("" : "+v"(c##i));
    CHAINS(STEP)
#undef STEP
  }
  return double(kIterations) * 12 * 32 * 2 / seconds(start);
}

__attribute__((target("avx2,fma"))) static double runAVX2() {
  __m256 a = _mm256_set1_ps(1.0f + 1e-7f), b = _mm256_set1_ps(1e-9f);
#define DECLARE(i) __m256 c##i = _mm256_set1_ps(float(i));
  CHAINS(DECLARE)
#undef DECLARE
  auto start = Clock::now();
  for (long i = 0; i < kIterations; ++i) {
#define STEP(i)                                                                                    \
  c##i = _mm256_fmadd_ps(c##i, a, b);                                                              \
  asm volatile("" : "+v"(c##i));
    CHAINS(STEP)
#undef STEP
  }
  return double(kIterations) * 12 * 8 * 2 / seconds(start);
}

/// GFLOP/s of all threads together; `bf16` asks for products of bf16 pairs, 0 when the machine has
/// none.
extern "C" double attn_bench_peak(unsigned threads, bool bf16) {
  double (*run)() = __builtin_cpu_supports("avx512f") ? runF32 : runAVX2;
  if (bf16) {
    if (!__builtin_cpu_supports("avx512bf16"))
      return 0;
    run = runBF16;
  }
  std::vector<double> rates(threads);
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i)
    workers.emplace_back([&, i] { rates[i] = run(); });
  for (std::thread &worker : workers)
    worker.join();
  double total = 0;
  for (double rate : rates)
    total += rate;
  return total / 1e9;
}
