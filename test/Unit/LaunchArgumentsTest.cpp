//===- LaunchArgumentsTest.cpp - arguments of a launch, and those refused ---------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/LaunchFixture.h"

using namespace attn;

TEST_F(LaunchTest, TensorMapsAreRemembered) {
  Kernel kernel = load(makePlan());
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 2u);
  query.shape[2] = 999;
  output.shape[2] = 999;
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 3u);
  key.address += 16;
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 4u);
  key.strides = {8 * 500 * 136, 500 * 136, 136, 1};
  ASSERT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 5u);
  EXPECT_EQ(fake->encodings.back().strides[0], 272u);
  // Another kernel does not take the first one's maps.
  Kernel other = load(makePlan());
  ASSERT_TRUE(other.launch({query, key, output, 1.0}, nullptr).ok());
  EXPECT_EQ(fake->numEncodings, 7u);
}

TEST_F(LaunchTest, StridesOfSingletonsMeanNothing) {
  Kernel kernel = load(makePlan());
  FakeTensor single(0x100000, {1, 1, 1, 128}, {7, 3, 1, 1});
  FakeTensor result(0x300000, {1, 1, 1, 128});
  Status status = kernel.launch({single, key, result, 1.0}, nullptr);
  EXPECT_TRUE(status.ok()) << status.str();
}

TEST_F(LaunchTest, BadTensorMaps) {
  Kernel kernel = load(makePlan());
  auto launchKey = [&](FakeTensor bad) {
    return kernel.launch({query, bad, output, 1.0}, nullptr);
  };
  expectInvalid(launchKey({0x200008, {2, 8, 500, 128}}),
                "expected the address of argument 1 to be a multiple of 16 bytes and not null, got "
                "0x200008",
                "start the tensor at a multiple of 8 elements of its allocation, or copy it");
  expectInvalid(launchKey({0, {2, 8, 500, 128}}),
                "expected the address of argument 1 to be a multiple of 16 bytes and not null, got "
                "0x0");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {1, 1, 130, 1}}),
                "expected the stride of dimension 2 of argument 1 to be a multiple of 8 elements "
                "(16 bytes), got 130",
                "pad the rows so that the stride is 136");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {8, 8, 128, 500}}),
                "expected the stride of dimension 3 of argument 1 to be 1, got 500",
                "copy the tensor so that this dimension is the innermost in memory");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {8, 8, -128, 1}}),
                "expected the stride of dimension 2 of argument 1 to be from 0 to 549755813880 "
                "elements, got -128");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {int64_t(1) << 39, 8, 128, 1}}),
                "expected the stride of dimension 0 of argument 1 to be from 0 to 549755813880 "
                "elements, got 549755813888");
  expectInvalid(launchKey({0x200000, {2, 8, (int64_t(1) << 32) + 1, 128}}),
                "expected the size of dimension 2 of argument 1 to be from 0 to 4294967296, got "
                "4294967297",
                "split the problem along this dimension");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128}, {}, DataType::F16}),
                "expected argument 1 of type bf16, got f16", "convert it, or compile for f16");
  expectInvalid(launchKey({0x200000, {8, 500, 128}}),
                "expected argument 1 of at least 4 dimensions, got 3");
  expectInvalid(launchKey({0x200000, {2, 8, 500, 128, 3}}),
                "expected dimension 4 of argument 1 to have size 1, got 3");
  EXPECT_EQ(fake->numEncodings, 1u);
}

TEST_F(LaunchTest, EncodingFails) {
  Kernel kernel = load(makePlan());
  fail("TensorMapEncodeTiled", cuda::InvalidValue);
  // Twice: a failure is not remembered.
  for (int i = 0; i < 2; ++i)
    expectError(kernel.launch({query, key, output, 1.0}, nullptr), StatusCode::DriverFailure,
                "failed to encode the tensor map of argument 0: injected error (CUDA_ERROR_1)");
}

TEST_F(LaunchTest, MemoryOfOthers) {
  Kernel kernel = load(makePlan());
  fake->hostAddress = 0x200000;
  expectInvalid(kernel.launch({query, key, output, 1.0}, nullptr),
                "expected argument 1 in memory of device 0, got the address 0x200000, which the "
                "driver does not know",
                "copy the tensor to the device");
  fake->hostAddress = 0;
  fake->otherDeviceAddress = 0x300000;
  expectInvalid(kernel.launch({query, key, output, 1.0}, nullptr),
                "expected argument 2 in memory of device 0, got memory of device 1",
                "copy the tensor, or compile for that device");
  // A driver that does not answer says nothing against an address.
  fail("PointerGetAttributes", cuda::InvalidContext);
  EXPECT_TRUE(kernel.launch({query, key, output, 1.0}, nullptr).ok());
}

TEST_F(LaunchTest, BadArguments) {
  Kernel kernel = load(makePlan());
  expectInvalid(kernel.launch({query, key, output}, nullptr), "expected 4 arguments, got 3");
  expectInvalid(kernel.launch({query, 1, output, 1.0}, nullptr),
                "expected argument 1 to be a tensor, got an integer");
  expectInvalid(kernel.launch({query, key, output, key}, nullptr),
                "expected argument 3 to be a number, got a tensor");
  expectInvalid(kernel.launch({query, key, FakeTensor(0, {2, 8, 1000, 128}), 1.0}, nullptr),
                "expected argument 2 to have memory, got a null pointer");
  expectInvalid(kernel.launch({query, key, FakeTensor(16, {1000, 128}), 1.0}, nullptr),
                "expected argument 2 of at least 3 dimensions, got 2");
  expectInvalid(kernel.launch({FakeTensor(16, {2, 8, -1, 128}), key, output, 1.0}, nullptr),
                "expected the size of dimension 2 of argument 0 to be at least 0, got -1");
  TensorView shapeless{nullptr, DataType::BF16, 4, nullptr, nullptr};
  expectInvalid(kernel.launch({shapeless, key, output, 1.0}, nullptr),
                "expected argument 0 to have a shape, got null");
  FakeTensor deep(16, std::vector<int64_t>(9, 1));
  expectInvalid(kernel.launch({deep, key, output, 1.0}, nullptr),
                "expected argument 0 of 0 to 8 dimensions, got 9");
}

// Who knows arguments by name can say so.
TEST_F(LaunchTest, ArgumentsByName) {
  Kernel kernel = load(makePlan());
  Status status = kernel.launch({FakeTensor(16, {2, 8, -1, 128}), key, output, 1.0}, nullptr);
  ASSERT_TRUE(status.argument);
  EXPECT_EQ(status.argument->index, 0u);
  status.nameArgument("query");
  EXPECT_EQ(status.message,
            "query: expected the size of dimension 2 of query to be at least 0, got -1");
  // What is about no argument stays.
  status = kernel.launch({query}, nullptr);
  EXPECT_FALSE(status.argument);
  status.nameArgument("query");
  EXPECT_EQ(status.message, "expected 4 arguments, got 1");
}

TEST_F(LaunchTest, NarrowIntegers) {
  KernelPlan plan = makePlan();
  plan.parameters[4].type = "i32";
  plan.parameters[5].type = "i32";
  Kernel kernel = load(plan);
  expectInvalid(kernel.launch({query, key, output, int64_t(1) << 40}, nullptr),
                "expected argument 3 to fit 32 bits, got 1099511627776");
  expectInvalid(kernel.launch({query, key, output, 0.5}, nullptr),
                "expected argument 3 to be an integer, got a floating-point number");
  FakeTensor far(16, {2, 8, 1000, 128}, {8, int64_t(1) << 31, 128, 1});
  expectInvalid(kernel.launch({query, key, far, 1}, nullptr),
                "expected the stride of dimension 1 of argument 2 to fit 32 bits, got 2147483648");
}
