//===- Frame.cpp - the tensors of one call -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "Frame.h"
#include "Error.h"
#include <algorithm>
#include <dlfcn.h>
#include <torch/csrc/stable/ops.h>

using namespace attn_torch;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

int32_t attn_torch::findDevice(const Tensor &x) {
  return x.is_cpu() ? -1 : static_cast<int32_t>(x.get_device_index());
}

Tensor attn_torch::makeEmpty(const int64_t *shape, size_t rank, ScalarType type, int32_t device) {
  std::array<int64_t, 8> strides = {};
  if (rank > strides.size())
    refuse("captures: expected at most 8 dimensions");
  // As PyTorch has them: no extent counts less than 1.
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  AtenTensorHandle handle;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      static_cast<int64_t>(rank), shape, strides.data(),
      torch::stable::detail::to<int32_t>(torch::stable::detail::from(type)),
      device < 0 ? aoti_torch_device_type_cpu() : aoti_torch_device_type_cuda(),
      std::max(device, 0), &handle));
  return Tensor(handle);
}

//===----------------------------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------------------------===//

using FindStream = AOTITorchError (*)(int32_t device, void **stream);

/// Of libtorch_cuda.so, which PyTorch has loaded where there are tensors of GPUs. This library is
/// built without it, and serves those without a GPU.
static FindStream loadFindStream() {
  void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  void *scope = library ? library : RTLD_DEFAULT;
  return reinterpret_cast<FindStream>(dlsym(scope, "aoti_torch_get_current_cuda_stream"));
}

static void *findStream(int32_t device) {
  static const FindStream find = loadFindStream();
  void *stream = nullptr;
  // It is there: tensors of a GPU come from that library alone.
  TORCH_ERROR_CODE_CHECK(find(device, &stream));
  return stream;
}

//===----------------------------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------------------------===//

static void setType(const char *name, ScalarType type, attn_tensor &tensor) {
  auto set = [&](int code, int bits) {
    tensor.dtype = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), /*lanes=*/1};
  };
  switch (type) {
  case ScalarType::Half:
    return set(ATTN_DL_FLOAT, 16);
  case ScalarType::BFloat16:
    return set(ATTN_DL_BFLOAT, 16);
  case ScalarType::Float:
    return set(ATTN_DL_FLOAT, 32);
  case ScalarType::Double:
    return set(ATTN_DL_FLOAT, 64);
  case ScalarType::Bool: // Kernels read bools as bytes.
  case ScalarType::Char:
    return set(ATTN_DL_INT, 8);
  case ScalarType::Int:
    return set(ATTN_DL_INT, 32);
  case ScalarType::Long:
    return set(ATTN_DL_INT, 64);
  default:
    refuse(std::string(name) + ": expected a type that attn has");
  }
}

attn_tensor &Frame::take(int32_t rank) {
  attn_tensor &tensor = tensors[size];
  tensor.ndim = rank;
  tensor.shape = extents[size].data();
  tensor.strides = tensor.shape + 8;
  ++size;
  return tensor;
}

static std::string describePlace(int32_t device) {
  return device < 0 ? "the CPU" : "cuda:" + std::to_string(device);
}

void Frame::add(const char *name, const Tensor &x, bool isSwapped) {
  auto shape = x.sizes(), strides = x.strides();
  if (shape.size() > 8)
    refuse(std::string(name) + ": expected at most 8 dimensions");
  if (int32_t place = findDevice(x); place != device)
    refuse(std::string(name) + ": expected a tensor on " + describePlace(device) +
           (device < 0 ? ", as the others are, got one on " : ", got one on ") +
           (place < 0 ? "cpu" : describePlace(place)) + " (move all of them to one device)");
  attn_tensor &tensor = take(static_cast<int32_t>(shape.size()));
  std::copy(shape.begin(), shape.end(), tensor.shape);
  std::copy(strides.begin(), strides.end(), tensor.strides);
  if (isSwapped && shape.size() == 4) {
    std::swap(tensor.shape[1], tensor.shape[2]);
    std::swap(tensor.strides[1], tensor.strides[2]);
  }
  tensor.data = x.data_ptr();
  tensor.device = {device < 0 ? ATTN_DL_CPU : ATTN_DL_CUDA, std::max(device, 0)};
  setType(name, x.scalar_type(), tensor);
}

void Frame::addScale(float *scale) {
  attn_tensor &tensor = take(0);
  tensor.data = scale;
  tensor.device.device_type = ATTN_DL_CPU;
  tensor.dtype = {ATTN_DL_FLOAT, 32, /*lanes=*/1};
}

void Frame::run(const attn_kernel *kernel) {
  std::vector<const attn_tensor *> pointers(size);
  for (size_t i = 0; i < size; ++i)
    pointers[i] = &tensors[i];
  void *stream = nullptr;
  if (device >= 0) {
    stream = findStream(device);
  } else {
    auto threads = static_cast<int32_t>(torch::stable::get_num_threads());
    if (threads != attn_get_num_threads())
      check(attn_set_num_threads(threads));
  }
  check(attn_run(kernel, pointers.data(), size, stream));
}
