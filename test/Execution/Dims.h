//===- Dims.h - head dimensions as parameters of tests -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_DIMS_H
#define ATTN_TEST_EXECUTION_DIMS_H

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace attn::test {

/// D and Dv.
using Dims = std::pair<int64_t, int64_t>;

inline std::string nameDims(const testing::TestParamInfo<Dims> &info) {
  return llvm::formatv("D{0}_Dv{1}", info.param.first, info.param.second).str();
}

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_DIMS_H
