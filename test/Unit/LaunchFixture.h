//===- LaunchFixture.h - launches on the fake driver ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_LAUNCHFIXTURE_H
#define ATTN_TEST_UNIT_LAUNCHFIXTURE_H

#include "test/Unit/Runtime/Fixture.h"

namespace attn {

class LaunchTest : public FakeCudaTest {
protected:
  Kernel load(const KernelPlan &plan) {
    Result<Kernel> kernel = Kernel::load(makeImage({plan}));
    EXPECT_TRUE(kernel) << kernel.getStatus().str();
    return std::move(*kernel);
  }

  void expectError(const Status &status, StatusCode code, const std::string &message,
                   const std::string &hint = "") {
    EXPECT_EQ(status.code, code) << status.str();
    EXPECT_EQ(status.message, message);
    if (!hint.empty())
      EXPECT_EQ(status.hint, hint);
    EXPECT_TRUE(fake->launches.empty());
  }
  void expectInvalid(const Status &status, const std::string &message,
                     const std::string &hint = "") {
    expectError(status, StatusCode::InvalidArgument, message, hint);
  }

  template <typename T> static T as(const std::string &bytes) {
    T value{};
    EXPECT_EQ(bytes.size(), sizeof(T));
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(T)));
    return value;
  }

  FakeTensor query{0x100000, {2, 8, 1000, 128}};
  FakeTensor key{0x200000, {2, 8, 500, 128}};
  FakeTensor output{0x300000, {2, 8, 1000, 128}};
};

} // namespace attn

#endif // ATTN_TEST_UNIT_LAUNCHFIXTURE_H
