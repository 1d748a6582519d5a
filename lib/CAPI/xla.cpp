//===- xla.cpp - kernels as custom calls of XLA -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// XLA calls a handler with buffers and attributes. Everything that makes a kernel is text in the
// attributes, so that a program that XLA has kept on disk means the same in the next process; a
// handle would not. Written on XLA's C interface: its C++ one is a template library of a version.
//
//===----------------------------------------------------------------------------------------===//

#include "attn-c/attn.h"
#include "xla/ffi/api/c_api.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>

using llvm::StringRef;

static XLA_FFI_Error *fail(const XLA_FFI_Api *api, const llvm::Twine &message) {
  std::string text = ("attn: " + message).str();
  XLA_FFI_Error_Create_Args args = {};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = text.c_str();
  args.errc = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  return api->XLA_FFI_Error_Create(&args);
}

/// Takes an error of XLA itself apart: its message, or nothing where there is none.
static std::string takeMessage(const XLA_FFI_Api *api, XLA_FFI_Error *error) {
  if (!error)
    return {};
  XLA_FFI_Error_GetMessage_Args args = {};
  args.struct_size = XLA_FFI_Error_GetMessage_Args_STRUCT_SIZE;
  args.error = error;
  api->XLA_FFI_Error_GetMessage(&args);
  std::string message = args.message;
  XLA_FFI_Error_Destroy_Args destroy = {};
  destroy.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
  destroy.error = error;
  api->XLA_FFI_Error_Destroy(&destroy);
  return message.empty() ? "an error without a message" : message;
}

static XLA_FFI_Error *failLast(const XLA_FFI_Api *api) {
  StringRef hint = attn_last_hint();
  return fail(api, attn_last_message() + (hint.empty() ? "" : " (" + hint + ")"));
}

/// A text among the attributes; empty if there is none of the name.
static StringRef findText(const XLA_FFI_Attrs &attrs, StringRef name) {
  for (int64_t i = 0; i < attrs.size; ++i) {
    if (attrs.types[i] != XLA_FFI_AttrType_STRING ||
        StringRef(attrs.names[i]->ptr, attrs.names[i]->len) != name)
      continue;
    auto *text = static_cast<const XLA_FFI_ByteSpan *>(attrs.attrs[i]);
    return {text->ptr, text->len};
  }
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------------------------===//

/// Compiles with options written as "block-m=64\n".
static attn_kernel *compile(StringRef source, StringRef optionLines) {
  attn_options *options;
  if (attn_options_create(&options) != ATTN_OK)
    return nullptr;
  attn_kernel *kernel = nullptr;
  // A program compiles the kernels that its calls take.
  bool isSet = attn_options_set(options, "lazy", "on") == ATTN_OK;
  for (StringRef line : llvm::split(optionLines, '\n')) {
    auto [key, value] = line.split('=');
    isSet &=
        key.empty() || attn_options_set(options, key.str().c_str(), value.str().c_str()) == ATTN_OK;
  }
  if (isSet && attn_compile(source.str().c_str(), options, &kernel) != ATTN_OK)
    kernel = nullptr;
  attn_options_free(options);
  return kernel;
}

namespace {
struct Kernels {
  std::shared_mutex mutex;
  /// By options, and then by source.
  llvm::StringMap<llvm::StringMap<std::shared_ptr<attn_kernel>>> all;
  /// Their options and sources, the first one in front.
  std::deque<std::pair<std::string, std::string>> order;
};
} // namespace

/// A program that makes kernels without end would fill the memory with those that nobody calls.
static constexpr size_t kMostKernels = 512;

/// The kernel of a source and options. Null if it does not compile.
static std::shared_ptr<attn_kernel> findKernel(StringRef source, StringRef options) {
  // Never destroyed: programs may run until the process ends.
  static auto &kernels = *new Kernels;
  {
    std::shared_lock lock(kernels.mutex);
    auto found = kernels.all.find(options);
    if (found != kernels.all.end())
      if (std::shared_ptr<attn_kernel> kernel = found->second.lookup(source))
        return kernel;
  }
  std::shared_ptr<attn_kernel> kernel(compile(source, options), attn_kernel_free);
  if (!kernel)
    return nullptr;
  std::unique_lock lock(kernels.mutex);
  auto [known, isNew] = kernels.all[options].try_emplace(source, kernel);
  kernel = known->second;
  if (isNew)
    kernels.order.emplace_back(options, source);
  // Calls that run the one that goes hold it themselves.
  if (kernels.order.size() > kMostKernels) {
    kernels.all[kernels.order.front().first].erase(kernels.order.front().second);
    kernels.order.pop_front();
  }
  return kernel;
}

//===----------------------------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------------------------===//

static bool setType(XLA_FFI_DataType type, attn_tensor &tensor) {
  auto set = [&](int code, int bits) {
    tensor.dtype.code = static_cast<uint8_t>(code);
    tensor.dtype.bits = static_cast<uint8_t>(bits);
    tensor.dtype.lanes = 1;
    return true;
  };
  switch (type) {
  case XLA_FFI_DataType_F16:
    return set(ATTN_DL_FLOAT, 16);
  case XLA_FFI_DataType_BF16:
    return set(ATTN_DL_BFLOAT, 16);
  case XLA_FFI_DataType_F32:
    return set(ATTN_DL_FLOAT, 32);
  case XLA_FFI_DataType_F64:
    return set(ATTN_DL_FLOAT, 64);
  case XLA_FFI_DataType_PRED: // Kernels read bools as bytes.
  case XLA_FFI_DataType_S8:
    return set(ATTN_DL_INT, 8);
  case XLA_FFI_DataType_S32:
    return set(ATTN_DL_INT, 32);
  case XLA_FFI_DataType_S64:
    return set(ATTN_DL_INT, 64);
  default:
    return false;
  }
}

namespace {
/// A buffer of XLA, which is row-major, as a kernel takes it.
struct Tensor {
  llvm::SmallVector<int64_t, 4> shape, strides;
  attn_tensor tensor = {};

  /// `isSwapped` for a matrix of (B, S, H, D); `ordinal` of a GPU, or -1.
  bool set(const XLA_FFI_Buffer &buffer, bool isSwapped, int32_t ordinal) {
    shape.assign(buffer.dims, buffer.dims + buffer.rank);
    strides.resize(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      strides[i] = stride;
      stride *= shape[i];
    }
    if (isSwapped && shape.size() == 4) {
      std::swap(shape[1], shape[2]);
      std::swap(strides[1], strides[2]);
    }
    tensor.data = buffer.data;
    tensor.device.device_type = ordinal < 0 ? ATTN_DL_CPU : ATTN_DL_CUDA;
    tensor.device.device_id = ordinal < 0 ? 0 : ordinal;
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
    tensor.strides = strides.data();
    return setType(buffer.dtype, tensor);
  }
};
} // namespace

/// XLA asks once, without buffers, which version the handler is written for.
static bool answerMetadata(XLA_FFI_CallFrame *frame) {
  XLA_FFI_Extension_Base *extension = frame->extension_start;
  if (!extension || extension->type != XLA_FFI_Extension_Metadata)
    return false;
  XLA_FFI_Metadata *metadata = reinterpret_cast<XLA_FFI_Metadata_Extension *>(extension)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  metadata->traits = 0;
  return true;
}

/// Runs the kernel on the device of the frame: `ordinal` of a GPU, with its stream, or -1.
static XLA_FFI_Error *run(XLA_FFI_CallFrame *frame, int32_t ordinal, void *stream) {
  const XLA_FFI_Api *api = frame->api;
  StringRef swapped = findText(frame->attrs, "swapped");
  size_t numArguments = frame->args.size, count = numArguments + frame->rets.size;
  if (swapped.size() != count)
    return fail(api, "swapped: expected " + llvm::Twine(count) + " letters, got " +
                         llvm::Twine(swapped.size()));
  std::string options = findText(frame->attrs, "options").str();
  if (ordinal >= 0)
    options += "\ndevice=cuda:" + std::to_string(ordinal);
  std::shared_ptr<attn_kernel> kernel = findKernel(findText(frame->attrs, "source"), options);
  if (!kernel)
    return failLast(api);
  llvm::SmallVector<Tensor, 8> tensors(count);
  llvm::SmallVector<const attn_tensor *, 8> pointers;
  for (size_t i = 0; i < count; ++i) {
    void *buffer = i < numArguments ? frame->args.args[i] : frame->rets.rets[i - numArguments];
    if (!tensors[i].set(*static_cast<const XLA_FFI_Buffer *>(buffer), swapped[i] == 's', ordinal))
      return fail(api, "tensor " + llvm::Twine(i) + ": expected a type that attn has");
    pointers.push_back(&tensors[i].tensor);
  }
  if (attn_run(kernel.get(), pointers.data(), count, stream) != ATTN_OK)
    return failLast(api);
  return nullptr;
}

/// The custom call "attn_run" of the CPU: arguments and then results of the function in `source`,
/// compiled by `options`. `swapped` has an s for each that is a matrix of (B, S, H, D), and another
/// letter for each that is taken as it is.
extern "C" ATTN_EXPORT XLA_FFI_Error *attn_xla_run(XLA_FFI_CallFrame *frame) {
  return answerMetadata(frame) ? nullptr : run(frame, -1, nullptr);
}

/// The same of CUDA: queued on XLA's stream. Numbers are in host memory, where XLA has none, so
/// that the function takes tensors alone.
extern "C" ATTN_EXPORT XLA_FFI_Error *attn_xla_run_cuda(XLA_FFI_CallFrame *frame) {
  if (answerMetadata(frame))
    return nullptr;
  const XLA_FFI_Api *api = frame->api;
  XLA_FFI_DeviceOrdinal_Get_Args device = {};
  device.struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE;
  device.ctx = frame->ctx;
  std::string message = takeMessage(api, api->XLA_FFI_DeviceOrdinal_Get(&device));
  XLA_FFI_Stream_Get_Args stream = {};
  stream.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
  stream.ctx = frame->ctx;
  if (message.empty())
    message = takeMessage(api, api->XLA_FFI_Stream_Get(&stream));
  return message.empty() ? run(frame, device.device_ordinal, stream.stream) : fail(api, message);
}
