//===- FuzzTensors.cpp - any tensors through the C interface ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

//
// Whatever attn_run accepts must be read and written inside of the memory that the descriptors
// span. Each tensor ends where a page begins that cannot be touched, or starts where one ends.
//
//===----------------------------------------------------------------------------------------===//

#include "attn-c/attn.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <vector>

namespace {
/// Pages with an untouchable one on either side.
struct Guarded {
  static constexpr size_t kBytes = 1 << 20, kPage = 4096;
  char *pages;

  Guarded() {
    char *memory = static_cast<char *>(mmap(nullptr, kBytes + 2 * kPage, PROT_NONE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    pages = memory + kPage;
    if (memory == MAP_FAILED || mprotect(pages, kBytes, PROT_READ | PROT_WRITE) != 0)
      abort();
  }
};

constexpr int kRank = 5, kMost = 9;

struct Description {
  attn_tensor tensor = {};
  int64_t shape[kRank] = {}, strides[kRank] = {};
};
} // namespace

/// Operands that share an argument, a table, a number, and two results.
static const char *const kSources[] = {
    "func.func @f(%q: tensor<?x?x?x4xf32>, %k: tensor<?x?x?x4xf32>, %v: tensor<?x?x?x4xf32>, "
    "%scale: f32, %table: tensor<?x?xf32>) -> (tensor<?x?x?x4xf32>, tensor<?x?x?xf32>) {\n"
    "  %o, %lse = attn.attention %q, %k, %v scale(%scale) score(%s, %b, %h, %m, %n) {\n"
    "    %x = tensor.extract %table[%h, %n] : tensor<?x?xf32>\n"
    "    %t = arith.addf %s, %x : f32\n"
    "    attn.yield %t : f32\n"
    "  } : tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32> -> tensor<?x?x?x4xf32>, "
    "tensor<?x?x?xf32>\n"
    "  return %o, %lse : tensor<?x?x?x4xf32>, tensor<?x?x?xf32>\n}\n",
    "func.func @f(%a: tensor<?x?x?x4xf32>, %v: tensor<?x?x?x4xf32>) -> tensor<?x?x?x4xf32> {\n"
    "  %o = attn.attention %a, %a, %v : tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, "
    "tensor<?x?x?x4xf32> -> tensor<?x?x?x4xf32>\n"
    "  return %o : tensor<?x?x?x4xf32>\n}\n",
    "func.func @f(%q: tensor<?x?x?x4xf16>, %k: tensor<?x?x?x4xf16>) -> tensor<?x?x?x4xf16> {\n"
    "  %o = attn.attention %q, %k, %q : tensor<?x?x?x4xf16>, tensor<?x?x?x4xf16>, "
    "tensor<?x?x?x4xf16> -> tensor<?x?x?x4xf16>\n"
    "  return %o : tensor<?x?x?x4xf16>\n}\n",
    "func.func @f(%q: tensor<?x?x3x4xf32>, %k: tensor<?x?x?x4xf32>, %ids: tensor<?xi32>) -> "
    "tensor<?x?x3x4xf32> {\n"
    "  %o = attn.attention %q, %k, %k variants [#attn.key_length] captures(%ids : tensor<?xi32>) "
    ": tensor<?x?x3x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32> -> tensor<?x?x3x4xf32>\n"
    "  return %o : tensor<?x?x3x4xf32>\n}\n"};

/// Mostly what fits, so that calls come through; and now and then anything.
static Description describe(FuzzedDataProvider &data, const attn_value &value,
                            const int64_t (&common)[8]) {
  static constexpr int64_t kOdd[] = {0, -1, INT64_MAX, INT64_MIN, int64_t(1) << 32, 1 << 20};
  Description made;
  attn_tensor &tensor = made.tensor;
  bool isOdd = data.ConsumeIntegralInRange(0, 31) == 0;
  bool isHalf = strcmp(value.type, "f16") == 0, isInteger = value.type[0] == 'i';
  tensor.dtype = {uint8_t(isInteger ? ATTN_DL_INT : ATTN_DL_FLOAT), uint8_t(isHalf ? 16 : 32), 1};
  tensor.device.device_type = ATTN_DL_CPU;
  tensor.ndim = value.ndim;
  if (isOdd) {
    tensor.ndim = data.ConsumeIntegralInRange(-1, kRank);
    tensor.dtype = {data.ConsumeIntegral<uint8_t>(), data.ConsumeIntegral<uint8_t>(),
                    data.ConsumeIntegral<uint8_t>()};
    tensor.device.device_type = data.ConsumeIntegralInRange(0, 14);
    tensor.byte_offset = data.ConsumeIntegralInRange(0, 9);
  }
  int64_t stride = 1;
  for (int i = kRank - 1; i >= 0; --i) {
    bool isInside = i < value.ndim;
    made.shape[i] = isInside && value.shape[i] >= 0 && data.ConsumeIntegralInRange(0, 15)
                        ? value.shape[i]
                        : common[data.ConsumeIntegralInRange(0, 7)];
    if (data.ConsumeIntegralInRange(0, 63) == 0)
      made.shape[i] = data.PickValueInArray(kOdd);
    made.strides[i] = stride;
    if (i != value.ndim - 1 && data.ConsumeIntegralInRange(0, 7) == 0)
      made.strides[i] = data.ConsumeIntegralInRange(-40, 400);
    if (isInside)
      stride = std::min<int64_t>(std::max<int64_t>(std::abs(made.strides[i]), 1) *
                                     std::max<int64_t>(std::min<int64_t>(made.shape[i], 4096), 1),
                                 1 << 20);
  }
  return made;
}

/// Puts the memory where its first or its last byte is next to what cannot be touched; whether it
/// fits.
static bool place(Description &made, const Guarded &memory, bool atEnd, bool withStrides) {
  attn_tensor &tensor = made.tensor;
  int64_t bytes = std::max<int64_t>(1, tensor.dtype.bits / 8), low = 0, high = 0, packed = 1;
  bool isEmpty = false;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    // A captured tensor may have more rows than a call reads, which is no reason to refuse it.
    if (made.shape[i] > 4096 && tensor.ndim <= 2)
      return false;
    if (made.shape[i] <= 0 || made.shape[i] > 4096) {
      isEmpty = true;
      continue;
    }
    int64_t span = (made.shape[i] - 1) * (withStrides ? made.strides[i] : packed);
    packed = std::min<int64_t>(packed * made.shape[i], 1 << 22);
    (span < 0 ? low : high) += span;
  }
  int64_t size = isEmpty ? 0 : (high - low + 1) * bytes;
  int64_t offset = int64_t(tensor.byte_offset);
  if (size + offset > int64_t(Guarded::kBytes))
    return false;
  char *start = atEnd ? memory.pages + Guarded::kBytes - size : memory.pages;
  // Of a row of zeros no element may be read; the guard is at hand.
  tensor.data = start - low * bytes - (atEnd ? offset : 0);
  return atEnd || offset == 0;
}

static std::vector<attn_kernel *> compileAll() {
  std::vector<attn_kernel *> kernels;
  attn_options *options = nullptr;
  attn_options_create(&options);
  attn_options_set(options, "threads", "1");
  for (const char *source : kSources) {
    kernels.emplace_back();
    if (attn_compile(source, options, &kernels.back()) != ATTN_OK) {
      fprintf(stderr, "%s\n", attn_last_message());
      abort();
    }
  }
  attn_options_free(options);
  return kernels;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const std::vector<attn_kernel *> kernels = compileAll();
  static Guarded memory[kMost];
  FuzzedDataProvider data(bytes, size);
  attn_kernel *kernel = kernels[data.ConsumeIntegralInRange<size_t>(0, kernels.size() - 1)];
  int64_t common[8];
  for (int64_t &extent : common)
    extent = data.ConsumeIntegralInRange(1, 40);
  common[0] = common[1] = 1;
  common[2] = common[3];
  Description made[kMost];
  const attn_tensor *tensors[kMost];
  size_t count = attn_kernel_num_arguments(kernel) + attn_kernel_num_results(kernel);
  for (size_t i = 0; i < count; ++i) {
    attn_value value;
    if (attn_kernel_value(kernel, i, &value) != ATTN_OK)
      abort();
    made[i] = describe(data, value, common);
    bool withStrides = data.ConsumeBool();
    if (!place(made[i], memory[i], data.ConsumeBool(), withStrides))
      return 0;
    made[i].tensor.shape = made[i].shape;
    made[i].tensor.strides = withStrides ? made[i].strides : nullptr;
    tensors[i] = &made[i].tensor;
  }
  if (attn_run(kernel, tensors, count, nullptr) != ATTN_OK && attn_last_message()[0] == 0)
    abort();
  return 0;
}
