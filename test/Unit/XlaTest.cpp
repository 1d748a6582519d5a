//===- XlaTest.cpp - the kernels that XLA's custom calls keep
//-----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// lib/CAPI/xla.cpp on a C interface that only counts, so that hundreds of sources take no time.
//
//===----------------------------------------------------------------------------------------===//

#include "attn-c/attn.h"
#include "xla/ffi/api/c_api.h"
#include "gtest/gtest.h"
#include <functional>
#include <map>
#include <string>

extern "C" XLA_FFI_Error *attn_xla_run(XLA_FFI_CallFrame *frame);

//===----------------------------------------------------------------------------------------===//
// The C interface
//===----------------------------------------------------------------------------------------===//

struct attn_kernel {
  std::string source;
};
struct attn_options {};

namespace {
/// By source.
std::map<std::string, int> compiled, freed;
/// What the next call does while its kernel runs.
std::function<void()> whileRunning;
} // namespace

extern "C" {
attn_code attn_options_create(attn_options **options) {
  *options = new attn_options;
  return ATTN_OK;
}
attn_code attn_options_set(attn_options *, const char *, const char *) { return ATTN_OK; }
void attn_options_free(attn_options *options) { delete options; }
attn_code attn_compile(const char *source, const attn_options *, attn_kernel **kernel) {
  ++compiled[source];
  *kernel = new attn_kernel{source};
  return ATTN_OK;
}
void attn_kernel_free(attn_kernel *kernel) {
  ++freed[kernel->source];
  delete kernel;
}
attn_code attn_run(const attn_kernel *, const attn_tensor *const *, size_t, void *) {
  if (auto act = std::exchange(whileRunning, nullptr))
    act();
  return ATTN_OK;
}
const char *attn_last_message(void) { return ""; }
const char *attn_last_hint(void) { return ""; }
}

//===----------------------------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------------------------===//

/// A call of a function without tensors.
static void call(const std::string &source) {
  const std::string texts[][2] = {{"source", source}, {"options", "block-m=64\n"}, {"swapped", ""}};
  XLA_FFI_AttrType types[3];
  XLA_FFI_ByteSpan names[3], values[3], *namesOf[3];
  void *valuesOf[3];
  for (int i = 0; i < 3; ++i) {
    types[i] = XLA_FFI_AttrType_STRING;
    names[i] = {texts[i][0].data(), texts[i][0].size()};
    values[i] = {texts[i][1].data(), texts[i][1].size()};
    namesOf[i] = &names[i];
    valuesOf[i] = &values[i];
  }
  XLA_FFI_CallFrame frame = {};
  frame.attrs.size = 3;
  frame.attrs.types = types;
  frame.attrs.names = namesOf;
  frame.attrs.attrs = valuesOf;
  EXPECT_EQ(attn_xla_run(&frame), nullptr);
}

/// The table of bounds in docs/Guides.md has this number too.
static constexpr int kMost = 512;

TEST(XlaTest, KeepsTheLastSources) {
  auto name = [](int i) { return "a" + std::to_string(i); };
  for (int i = 0; i < kMost; ++i)
    call(name(i));
  call(name(0));
  EXPECT_EQ(compiled[name(0)], 1);
  EXPECT_TRUE(freed.empty());
  // The first one goes, and is compiled when it is called again.
  call(name(kMost));
  EXPECT_EQ(freed, (std::map<std::string, int>{{name(0), 1}}));
  call(name(1));
  EXPECT_EQ(compiled[name(1)], 1);
  call(name(0));
  EXPECT_EQ(compiled[name(0)], 2);
  EXPECT_EQ(freed.size(), 2u);
}

TEST(XlaTest, ACallHoldsItsKernel) {
  const std::string held = "held";
  whileRunning = [&] {
    for (int i = 0; i < kMost; ++i)
      call("b" + std::to_string(i));
    EXPECT_EQ(freed[held], 0);
  };
  call(held);
  EXPECT_EQ(freed[held], 1);
}
