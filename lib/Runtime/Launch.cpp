//===- Launch.cpp - from arguments to a launch ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Launch.h"
#include "lib/Runtime/Arguments.h"
#include <algorithm>
#include <cstring>
#include <limits>

namespace attn {

using Kind = KernelParameter::Kind;

//===----------------------------------------------------------------------------------------===//
// The plan's side
//===----------------------------------------------------------------------------------------===//

Status LaunchRecipe::addParameter(const KernelParameter &from, unsigned &bytes) {
  Parameter parameter{from.kind};
  parameter.argument = from.argument;
  parameter.dim = from.dim;
  unsigned size = 8, alignment = 8;
  if (from.kind == Kind::TensorMap) {
    Result<TensorMapEncoder> encoder = TensorMapEncoder::create(from.map, from.argument);
    if (!encoder)
      return encoder.takeStatus();
    parameter.encoder = static_cast<unsigned>(encoders.size());
    encoders.push_back(*encoder);
    size = sizeof(cuda::TensorMapObject);
    alignment = alignof(cuda::TensorMapObject);
  } else if (from.kind != Kind::Pointer) {
    bool isReal = from.type == "f32";
    if (!(from.type == "i32" || from.type == "i64" || (isReal && from.kind == Kind::Scalar)))
      return {StatusCode::InvalidKernel,
              "expected a parameter of type i32 or i64, or a scalar of type f32, got '" +
                  from.type + "' in the plan of kernel '" + name + "'",
              ""};
    parameter.type =
        isReal ? ValueType::F32 : (from.type == "i32" ? ValueType::I32 : ValueType::I64);
    size = alignment = parameter.type == ValueType::I64 ? 8 : 4;
  }
  parameter.offset = (bytes + alignment - 1) / alignment * alignment;
  bytes = parameter.offset + size;
  parameters.push_back(parameter);
  return {};
}

Result<LaunchRecipe> LaunchRecipe::create(const KernelPlan &plan) {
  auto fail = [&](const std::string &message) {
    return Status{StatusCode::InvalidKernel, message + " in the plan of kernel '" + plan.name + "'",
                  ""};
  };
  LaunchRecipe recipe;
  recipe.name = plan.name;
  recipe.block = plan.block;
  recipe.cluster = plan.cluster;
  recipe.grid = plan.grid;
  recipe.isProgrammatic = plan.isProgrammatic;

  for (unsigned extent : plan.block)
    if (extent < 1 || extent > 1024)
      return fail("expected block extents from 1 to 1024, got " + std::to_string(extent));
  for (unsigned extent : plan.cluster)
    if (extent < 1 || extent > 16)
      return fail("expected cluster extents from 1 to 16, got " + std::to_string(extent));
  if (plan.dynamicSharedBytes > std::numeric_limits<int>::max())
    return fail("expected dynamic shared memory that fits 31 bits, got " +
                std::to_string(plan.dynamicSharedBytes) + " bytes");
  recipe.sharedBytes = static_cast<unsigned>(plan.dynamicSharedBytes);

  unsigned bytes = 0;
  for (const KernelParameter &parameter : plan.parameters) {
    if (Status status = recipe.addParameter(parameter, bytes); !status.ok())
      return status;
    recipe.numArguments = std::max<size_t>(recipe.numArguments, size_t(parameter.argument) + 1);
  }
  if (bytes > maxParameterBytes || recipe.parameters.size() > maxParameters)
    return fail("expected at most " + std::to_string(maxParameters) + " parameters of " +
                std::to_string(maxParameterBytes) + " bytes in all, got " +
                std::to_string(recipe.parameters.size()) + " of " + std::to_string(bytes));

  for (const std::vector<SizeFactor> &factors : plan.grid)
    for (const SizeFactor &factor : factors) {
      if (factor.divisor == 0)
        return fail("expected a grid divisor of at least 1, got 0");
      recipe.numArguments = std::max<size_t>(recipe.numArguments, countArguments(factor));
    }
  return recipe;
}

void LaunchRecipe::bind(const DeviceInfo &device) {
  for (std::vector<SizeFactor> &factors : grid)
    for (SizeFactor &factor : factors)
      bindDevice(factor, device);
  // Before CUDA 12.3 no graph captures such a launch. A kernel that waits for nothing goes on.
  constexpr int leastDriver = 12030;
  isProgrammatic &= device.driverVersion >= leastDriver;
}

//===----------------------------------------------------------------------------------------===//
// The call's side
//===----------------------------------------------------------------------------------------===//

Status LaunchRecipe::computeGrid(LaunchArguments arguments, std::array<unsigned, 3> &blocks) const {
  static constexpr int64_t limits[] = {2147483647, 65535, 65535};
  int64_t counts[3];
  bool empty = false;
  for (unsigned axis = 0; axis < 3; ++axis) {
    int64_t count = 1;
    bool overflows = false;
    for (const SizeFactor &factor : grid[axis]) {
      std::optional<int64_t> value = evaluate(factor, arguments);
      if (!value)
        return explainNoTensor(factor, arguments);
      overflows |= __builtin_mul_overflow(count, *value, &count);
      empty |= *value == 0;
    }
    counts[axis] = overflows ? std::numeric_limits<int64_t>::max() : count;
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (!empty && counts[axis] > limits[axis])
      return {StatusCode::ResourceLimit,
              "expected at most " + std::to_string(limits[axis]) + " blocks along " + "xyz"[axis] +
                  " in kernel '" + name + "', got " + std::to_string(counts[axis]),
              "split the batch into several calls"};
    if (!empty && counts[axis] % cluster[axis] != 0)
      return {StatusCode::InvalidKernel,
              "expected clusters of " + std::to_string(cluster[axis]) + " blocks along " +
                  "xyz"[axis] + " to fill the grid of kernel '" + name + "', got " +
                  std::to_string(counts[axis]) + " blocks",
              ""};
    blocks[axis] = empty ? 0 : static_cast<unsigned>(counts[axis]);
  }
  return {};
}

Status LaunchRecipe::writeInteger(const Parameter &parameter, int64_t value, char *to) const {
  if (parameter.type == ValueType::I64) {
    std::memcpy(to, &value, sizeof(value));
    return {};
  }
  int32_t narrow = static_cast<int32_t>(value);
  std::memcpy(to, &narrow, sizeof(narrow));
  if (narrow == value)
    return {};
  std::string before = "expected ";
  if (parameter.kind != Kind::Scalar)
    before += (parameter.kind == Kind::Size ? "the size" : "the stride") +
              std::string(" of dimension ") + std::to_string(parameter.dim) + " of ";
  return Status::aboutArgument(parameter.argument, std::move(before),
                               " to fit 32 bits, got " + std::to_string(value),
                               "split the problem into several calls");
}

/// For a map of a tensor without elements: the address of another tensor that has some.
static void *findAnyAddress(LaunchArguments arguments) {
  constexpr uintptr_t alignment = 16;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const LaunchArgument &argument = arguments[i];
    if (argument.getKind() != LaunchArgument::Kind::Tensor || isEmpty(argument.getTensor()))
      continue;
    char *data = static_cast<char *>(argument.getTensor().data);
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    if (address >= alignment)
      return data - address % alignment;
  }
  return reinterpret_cast<void *>(alignment); // NOLINT(performance-no-int-to-ptr)
}

Status LaunchRecipe::writeParameter(const Parameter &parameter, const Driver &driver,
                                    LaunchArguments arguments, char *to) const {
  unsigned index = parameter.argument;
  switch (parameter.kind) {
  case Kind::TensorMap: {
    const TensorView *tensor = findTensor(index, arguments);
    if (!tensor)
      return explainNoTensor(index, arguments);
    void *anyAddress = isEmpty(*tensor) ? findAnyAddress(arguments) : nullptr;
    return encoders[parameter.encoder].encode(driver, *tensor, anyAddress,
                                              *reinterpret_cast<cuda::TensorMapObject *>(to));
  }
  case Kind::Pointer: {
    const TensorView *tensor = findTensor(index, arguments);
    if (!tensor)
      return explainNoTensor(index, arguments);
    if (!tensor->data && !isEmpty(*tensor))
      return Status::aboutArgument(index, "expected ", " to have memory, got a null pointer");
    std::memcpy(to, static_cast<const void *>(&tensor->data), sizeof(tensor->data));
    return {};
  }
  case Kind::Size:
  case Kind::Stride: {
    const TensorView *tensor = findTensor(index, parameter.dim, arguments);
    if (!tensor)
      return explainNoTensor(index, parameter.dim, arguments);
    return writeInteger(parameter,
                        parameter.kind == Kind::Size
                            ? tensor->shape[parameter.dim]
                            : getStride(*tensor, static_cast<int>(parameter.dim)),
                        to);
  }
  case Kind::Scalar:
    break;
  }

  const LaunchArgument &value = arguments[index];
  bool isInteger = value.getKind() == LaunchArgument::Kind::Integer;
  if (parameter.type == ValueType::F32 && value.getKind() != LaunchArgument::Kind::Tensor) {
    float real = static_cast<float>(isInteger ? double(value.getInteger()) : value.getReal());
    std::memcpy(to, &real, sizeof(real));
    return {};
  }
  if (parameter.type != ValueType::F32 && isInteger)
    return writeInteger(parameter, value.getInteger(), to);
  std::string wanted = parameter.type == ValueType::F32 ? "a number" : "an integer";
  return Status::aboutArgument(index, "expected ",
                               " to be " + wanted + ", got " + describe(value.getKind()));
}

Status LaunchRecipe::prepare(const Driver &driver, LaunchArguments arguments, cuda::Stream stream,
                             Request &request) const {
  std::array<unsigned, 3> blocks;
  if (Status status = computeGrid(arguments, blocks); !status.ok())
    return status;
  request.config = {blocks[0], blocks[1],   blocks[2], block[0],           block[1],
                    block[2],  sharedBytes, stream,    request.attributes, 0};
  if (blocks[0] == 0)
    return {};
  size_t count = 0;
  for (const Parameter &parameter : parameters) {
    char *to = request.storage + parameter.offset;
    if (Status status = writeParameter(parameter, driver, arguments, to); !status.ok())
      return status;
    request.parameters[count++] = to;
  }
  auto addAttribute = [&](cuda::LaunchAttributeId id) -> cuda::LaunchAttribute & {
    cuda::LaunchAttribute &attribute = request.attributes[request.config.numAttributes++];
    attribute = {id, {}, {}};
    return attribute;
  };
  if (cluster[0] * cluster[1] * cluster[2] > 1)
    addAttribute(cuda::LaunchClusterDimension).cluster = {cluster[0], cluster[1], cluster[2]};
  if (isProgrammatic)
    addAttribute(cuda::LaunchProgrammaticSerialization).isProgrammatic = 1;
  return {};
}

Status LaunchRecipe::launch(const Driver &driver, cuda::Function function, Request &request) const {
  if (request.config.gridX == 0)
    return {};
  cuda::Code code = driver.LaunchKernelEx(&request.config, function, request.parameters, nullptr);
  if (code == cuda::Success)
    return {};
  return driver.check(code, "launch the kernel '" + name + "'");
}

} // namespace attn
