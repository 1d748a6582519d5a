//===- DeviceTensor.h - the execution tests' tensors on a GPU ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_DEVICETENSOR_H
#define ATTN_TEST_EXECUTION_DEVICETENSOR_H

#include "lib/Runtime/DeviceBuffer.h"
#include "test/Execution/Problem.h"

namespace attn::test {

llvm::Error toError(const Status &status);

/// A tensor's place in device memory, and what is written to or read from there.
class DeviceTensor {
public:
  /// The array in the layout that `memory` asks for. `seed` decides random layouts.
  static std::unique_ptr<DeviceTensor> create(Array &array, bool isOutput, Memory memory,
                                              uint64_t seed);
  virtual ~DeviceTensor() = default;

  /// Allocates and fills. The context must outlive this.
  virtual llvm::Error upload(const DeviceContext &context) = 0;
  /// The view points into this.
  virtual TensorView getView() const = 0;
  /// Copies to the host.
  virtual llvm::Error fetch() = 0;
  /// What the last fetch() found, in an order of its own.
  virtual llvm::ArrayRef<uint8_t> getFetched() const = 0;
  /// Fills the array from there, and looks at what should not have been touched.
  virtual llvm::Error copyBack() = 0;
};

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_DEVICETENSOR_H
