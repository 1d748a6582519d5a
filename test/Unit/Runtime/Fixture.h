//===- Fixture.h - tests on the fake driver ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_RUNTIME_FIXTURE_H
#define ATTN_TEST_UNIT_RUNTIME_FIXTURE_H

#include "attn/Runtime.h"
#include "lib/Plan/Plan.h"
#include "lib/Runtime/Driver.h"
#include "test/Unit/Runtime/FakeCuda.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>

namespace attn {

/// Each test starts with a fresh fake driver that works, and ends with everything given back.
class FakeCudaTest : public testing::Test {
protected:
  void SetUp() override {
    // What a test says of the cache is in its options, whatever ctest's preset or a user has set.
    unsetenv("ATTN_CACHE");
    unsetenv("ATTN_CACHE_DIR");
    void *library = dlopen(ATTN_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    fake = reinterpret_cast<FakeCuda *(*)()>(dlsym(library, "getFakeCuda"))();
    fake->~FakeCuda();
    new (fake) FakeCuda;
    overrideDriverLibrary(ATTN_FAKE_CUDA);
  }
  void TearDown() override {
    EXPECT_EQ(fake->retained, 0);
    EXPECT_EQ(fake->modules, 0);
    EXPECT_EQ(fake->allocations, 0);
    EXPECT_EQ(fake->events, 0);
    EXPECT_EQ(fake->handles.size() + fake->mapped.size() + fake->reservedBytes, 0u);
  }

  void fail(const char *function, cuda::Code code) {
    fake->failing = function;
    fake->failure = code;
  }

  static KernelImage makeImage(const std::vector<KernelPlan> &plans) {
    return {".version 8.4\n.target sm_90a\n", writePlan({plans, {}}), ""};
  }

  /// Query, key and output, B x H x M x D each, one block for each 128 rows of a head: a tensor map
  /// for two, a pointer and sizes for the third.
  static KernelPlan makePlan() {
    KernelPlan plan;
    plan.name = "attention";
    plan.target = "sm_90a";
    for (unsigned argument : {0u, 1u}) {
      KernelParameter &parameter = plan.parameters.emplace_back();
      parameter.kind = KernelParameter::Kind::TensorMap;
      parameter.argument = argument;
      parameter.map = {"bf16", {3, 2, 1, 0}, {64, 128, 1, 1}, 128};
    }
    auto add = [&](KernelParameter::Kind kind, unsigned argument, unsigned dim, const char *type) {
      KernelParameter &parameter = plan.parameters.emplace_back();
      parameter.kind = kind;
      parameter.argument = argument;
      parameter.dim = dim;
      parameter.type = type;
    };
    add(KernelParameter::Kind::Pointer, 2, 0, "");
    add(KernelParameter::Kind::Size, 1, 2, "i32");
    add(KernelParameter::Kind::Stride, 2, 1, "i64");
    add(KernelParameter::Kind::Scalar, 3, 0, "f32");
    plan.grid = {{{{2, 2, 128}}, {{2, 1, 1}}, {{2, 0, 1}}}};
    plan.block = {384, 1, 1};
    plan.dynamicSharedBytes = 200000;
    return plan;
  }

  /// The attention leaves f32 of its output's size in two parts for a second kernel: argument 4.
  static std::vector<KernelPlan> makeSplitPlans() {
    KernelPlan split = makePlan(), merge = makePlan();
    split.scratch = {{4, "f32", {{-1, 2, 1}, {2, 0, 1}, {2, 1, 1}, {2, 2, 1}, {-1, 128, 1}}},
                     {5, "f32", {{-1, 2, 1}, {2, 0, 1}, {2, 1, 1}, {2, 2, 1}}}};
    merge.name = "merge";
    merge.parameters = {merge.parameters[2]};
    for (unsigned argument : {4u, 5u}) {
      merge.parameters.push_back({KernelParameter::Kind::Pointer, argument, 0, "", {}});
      merge.parameters.push_back({KernelParameter::Kind::Stride, argument, 0, "i64", {}});
    }
    return {split, merge};
  }

  /// From now on launches keep what they are given for the parameters of this kernel.
  void recordParameters(const KernelPlan &plan) {
    fake->parameterSizes.clear();
    for (const KernelParameter &parameter : plan.parameters)
      fake->parameterSizes.push_back(parameter.kind == KernelParameter::Kind::TensorMap
                                         ? sizeof(cuda::TensorMapObject)
                                     : parameter.type == "i32" || parameter.type == "f32" ? 4
                                                                                          : 8);
  }
  /// The address of an argument that a launch was given, by a map or as it is; 0 if it was not.
  static uint64_t findAddress(const KernelPlan &plan, const FakeCuda::Launch &launch,
                              unsigned argument) {
    for (auto [parameter, bytes] : llvm::zip_equal(plan.parameters, launch.parameters)) {
      uint64_t address = 0;
      bool isAddress = parameter.kind == KernelParameter::Kind::TensorMap ||
                       parameter.kind == KernelParameter::Kind::Pointer;
      if (!isAddress || parameter.argument != argument)
        continue;
      std::memcpy(&address, bytes.data(), sizeof(address));
      return address;
    }
    return 0;
  }

  FakeCuda *fake = nullptr;
};

/// A tensor with its own shape and strides; only the address is made up.
struct FakeTensor {
  FakeTensor(uintptr_t address, std::vector<int64_t> shape, std::vector<int64_t> strides = {},
             DataType type = DataType::BF16)
      : address(address), shape(std::move(shape)), strides(std::move(strides)), type(type) {}

  operator LaunchArgument() const {
    return TensorView{reinterpret_cast<void *>(address), type, static_cast<int32_t>(shape.size()),
                      shape.data(), strides.empty() ? nullptr : strides.data()};
  }

  uintptr_t address;
  std::vector<int64_t> shape, strides;
  DataType type;
};

} // namespace attn

#endif // ATTN_TEST_UNIT_RUNTIME_FIXTURE_H
