//===- attn.cpp - the C interface over the C++ one --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn-c/attn.h"
#include "attn/Compiler.h"
#include "lib/CAPI/LastStatus.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstddef>
#include <cstdlib>
#include <cstring>

using namespace attn;
using llvm::StringRef;

struct attn_options {
  CompileOptions options;
};

struct attn_kernel {
  CompiledFunction function;
};

static_assert(static_cast<int>(StatusCode::DriverFailure) == ATTN_DRIVER_FAILURE,
              "the codes are those of StatusCode, in its order");

static thread_local Status lastStatus;

attn_code attn::finish(Status status) {
  if (status.ok())
    return ATTN_OK;
  lastStatus = std::move(status);
  return static_cast<attn_code>(lastStatus.code);
}

attn_code attn::fail(const llvm::Twine &message, const llvm::Twine &hint) {
  return finish({StatusCode::InvalidArgument, message.str(), hint.str()});
}

attn_code attn::failNull(StringRef name) { return fail(name + ": expected an address, got null"); }

//===----------------------------------------------------------------------------------------===//
// Version and errors
//===----------------------------------------------------------------------------------------===//

const char *attn_version(void) { return getVersion(); }
int32_t attn_abi_version(void) { return ATTN_ABI_VERSION; }
const char *attn_code_name(attn_code code) { return getName(static_cast<StatusCode>(code)); }
const char *attn_last_message(void) { return lastStatus.message.c_str(); }
const char *attn_last_hint(void) { return lastStatus.hint.c_str(); }

//===----------------------------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------------------------===//

attn_code attn_options_create(attn_options **options) {
  if (!options)
    return failNull("options");
  *options = new attn_options;
  return ATTN_OK;
}

template <typename T> static attn_code setNumber(StringRef key, StringRef value, T &option) {
  if (value.getAsInteger(10, option))
    return fail(key + ": expected a number, got '" + value + "'");
  return ATTN_OK;
}

/// "cpu", "cuda" or "cuda:1".
static attn_code setDevice(StringRef value, CompileOptions &to) {
  StringRef name = value, number;
  int ordinal = -1;
  bool isNumbered = name.contains(':');
  std::tie(name, number) = value.split(':');
  bool isRight = name == "cuda" ? !isNumbered || (!number.getAsInteger(10, ordinal) && ordinal >= 0)
                                : value == "cpu";
  if (!isRight)
    return fail("device: expected cpu, cuda or cuda:NUMBER, got '" + value + "'");
  to.device = name == "cuda" ? DeviceKind::CUDA : DeviceKind::CPU;
  to.ordinal = ordinal;
  return ATTN_OK;
}

static attn_code setSwitch(StringRef key, StringRef value, bool &option) {
  if (value != "on" && value != "off")
    return fail(key + ": expected on or off, got '" + value + "'");
  option = value == "on";
  return ATTN_OK;
}

attn_code attn_options_set(attn_options *options, const char *key, const char *value) {
  if (!options || !key || !value)
    return failNull(!options ? "options" : !key ? "key" : "value");
  CompileOptions &to = options->options;
  StringRef name = key, text = value;
  if (name == "device")
    return setDevice(text, to);
  if (name == "target")
    return to.target = value, ATTN_OK;
  if (name == "threads")
    return setNumber(name, text, to.threads);
  if (name == "block-m")
    return setNumber(name, text, to.blockM);
  if (name == "block-n")
    return setNumber(name, text, to.blockN);
  if (name == "splits")
    return setNumber(name, text, to.splits);
  if (name == "fixed-split")
    return setNumber(name, text, to.fixedSplit);
  if (name == "fused")
    return setSwitch(name, text, to.fused);
  if (name == "pack")
    return setNumber(name, text, to.pack);
  if (name == "slack")
    return setNumber(name, text, to.slack);
  if (name == "balance")
    return setSwitch(name, text, to.balance);
  if (name == "reserve")
    return setNumber(name, text, to.reserve);
  if (name == "search")
    return setNumber(name, text, to.search);
  if (name == "way")
    return to.way = value, ATTN_OK;
  if (name == "lazy")
    return setSwitch(name, text, to.lazy);
  if (name == "stay")
    return to.stay = value, ATTN_OK;
  if (name == "cache")
    return setSwitch(name, text, to.cache);
  if (name == "cpu")
    return to.cpu = value, ATTN_OK;
  if (name == "entry")
    return to.entry = value, ATTN_OK;
  if (name == "cache-dir")
    return to.cacheDirectory = value, ATTN_OK;
  return fail("options: expected device, cpu, threads, target, block-m, block-n, splits, "
              "fixed-split, fused, pack, way, lazy, stay, reserve, balance, slack, search, entry, "
              "cache or cache-dir, got '" +
              name + "'");
}

void attn_options_free(attn_options *options) { delete options; }

//===----------------------------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------------------------===//

/// The error of a spec, or the same spec for C++.
static Result<AttentionSpec> readSpec(const attn_spec *given) {
  auto expected = [](const llvm::Twine &message) {
    return Status{StatusCode::InvalidArgument, message.str(), "start from ATTN_SPEC_INIT"};
  };
  // Programs of earlier versions have no pages, or no words of training and types of outputs.
  constexpr size_t sizes[] = {sizeof(attn_spec), offsetof(attn_spec, softcap),
                              offsetof(attn_spec, page_size)};
  if (!llvm::is_contained(sizes, given->size))
    return expected("spec: expected size " + llvm::Twine(sizes[0]) + ", " + llvm::Twine(sizes[1]) +
                    " or " + llvm::Twine(sizes[2]) + ", got " + llvm::Twine(given->size));
  attn_spec spec = ATTN_SPEC_INIT;
  std::memcpy(&spec, given, given->size);
  if (spec.causal < ATTN_CAUSAL_NO || spec.causal > ATTN_CAUSAL_BOTTOM_RIGHT)
    return expected("spec: causal: expected a number from 0 to 2, got " + llvm::Twine(spec.causal));
  AttentionSpec read;
  const DataType types[] = {DataType::F16, DataType::BF16, DataType::F32, DataType::F8E4M3FN,
                            DataType::F8E5M2};
  auto find = [](llvm::ArrayRef<DataType> types, const char *name) -> std::optional<DataType> {
    const auto *type = llvm::find_if(
        types, [&](DataType type) { return name && StringRef(name) == getName(type); });
    return type == types.end() ? std::nullopt : std::optional(*type);
  };
  for (auto [name, placement] : {std::pair("row_positions", spec.row_positions),
                                 std::pair("key_positions", spec.key_positions)})
    if (placement < ATTN_POSITIONS_OWN || placement > ATTN_POSITIONS_TABLE)
      return expected("spec: " + llvm::Twine(name) + ": expected a number from 0 to 2, got " +
                      llvm::Twine(placement));
  std::optional<DataType> type = find(types, spec.type);
  if (!type)
    return expected("spec: type: expected f16, bf16, f32, f8E4M3FN or f8E5M2, got " +
                    llvm::Twine(spec.type ? spec.type : "null"));
  read.type = *type;
  if (spec.output_type) {
    std::optional<DataType> output = find(llvm::ArrayRef(types).take_front(3), spec.output_type);
    if (!output)
      return expected("spec: output_type: expected f16, bf16 or f32, got " +
                      llvm::Twine(spec.output_type));
    read.outputType = *output;
  }
  read.headDim = spec.head_dim;
  read.valueDim = spec.value_dim;
  read.causal = static_cast<Causal>(spec.causal);
  read.windowLeft = spec.window_left;
  read.windowRight = spec.window_right;
  read.hasScale = spec.has_scale;
  read.hasSink = spec.has_sink;
  read.returnsLse = spec.returns_lse;
  read.pageSize = spec.page_size;
  read.hasLengths = spec.has_lengths;
  read.isRagged = spec.is_ragged;
  read.softcap = spec.softcap;
  read.dropout = spec.dropout;
  read.hasAlibi = spec.has_alibi;
  read.hasDocuments = spec.has_documents;
  read.isGradient = spec.is_gradient;
  read.hasWideGradients = spec.has_wide_gradients;
  read.rowPositions = static_cast<Positions>(spec.row_positions);
  read.keyPositions = static_cast<Positions>(spec.key_positions);
  if (Status status = checkSpec(read); !status.ok()) {
    auto [word, rest] = StringRef(status.message).split(':');
    return expected("spec: " + llvm::convertToSnakeFromCamelCase(word) + ":" + rest);
  }
  return read;
}

attn_code attn_write_source(const attn_spec *spec, char **source) {
  if (!spec || !source)
    return failNull(!spec ? "spec" : "source");
  *source = nullptr;
  Result<AttentionSpec> read = readSpec(spec);
  if (!read)
    return finish(read.takeStatus());
  *source = strdup(getSource(*read).c_str());
  return *source ? ATTN_OK : finish({StatusCode::OutOfMemory, "source: expected memory", ""});
}

//===----------------------------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------------------------===//

static CompileOptions getOptions(const attn_options *options) {
  return options ? options->options : CompileOptions();
}

attn_code attn_compile(const char *source, const attn_options *options, attn_kernel **kernel) {
  if (!source || !kernel)
    return failNull(!source ? "source" : "kernel");
  *kernel = nullptr;
  Result<CompiledFunction> function = compile(source, getOptions(options));
  if (!function)
    return finish(function.takeStatus());
  *kernel = new attn_kernel{*function};
  return ATTN_OK;
}

void attn_kernel_free(attn_kernel *kernel) { delete kernel; }

size_t attn_kernel_num_arguments(const attn_kernel *kernel) {
  return kernel ? kernel->function.getInfo().arguments.size() : 0;
}

size_t attn_kernel_num_results(const attn_kernel *kernel) {
  return kernel ? kernel->function.getInfo().results.size() : 0;
}

attn_code attn_kernel_value(const attn_kernel *kernel, size_t index, attn_value *value) {
  if (!kernel || !value)
    return failNull(!kernel ? "kernel" : "value");
  const FunctionInfo &info = kernel->function.getInfo();
  size_t numArguments = info.arguments.size(), count = numArguments + info.results.size();
  if (index >= count)
    return fail("index: expected a number below " + llvm::Twine(count) + ", got " +
                llvm::Twine(index));
  const ValueInfo &found =
      index < numArguments ? info.arguments[index] : info.results[index - numArguments];
  *value = {found.name.c_str(), getName(found.type), found.isScalar,
            static_cast<int32_t>(found.shape.size()), found.shape.data()};
  return ATTN_OK;
}

double attn_kernel_compile_ms(const attn_kernel *kernel) {
  if (!kernel)
    return 0;
  const FunctionInfo &info = kernel->function.getInfo();
  return info.passesMs + info.llvmMs;
}

double attn_kernel_load_ms(const attn_kernel *kernel) {
  return kernel ? kernel->function.getInfo().loadMs : 0;
}

int32_t attn_kernel_is_from_disk(const attn_kernel *kernel) {
  return kernel && kernel->function.getInfo().isFromDisk;
}

int32_t attn_kernel_ordinal(const attn_kernel *kernel) {
  return kernel ? kernel->function.getInfo().ordinal : -1;
}

const char *attn_kernel_remark(const attn_kernel *kernel, size_t index) {
  if (!kernel || index >= kernel->function.getInfo().remarks.size())
    return nullptr;
  return kernel->function.getInfo().remarks[index].c_str();
}

//===----------------------------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------------------------===//

static std::optional<DataType> getDataType(const attn_tensor &tensor) {
  if (tensor.dtype.lanes != 1)
    return std::nullopt;
  switch (tensor.dtype.code << 8 | tensor.dtype.bits) {
  case ATTN_DL_FLOAT << 8 | 16:
    return DataType::F16;
  case ATTN_DL_FLOAT << 8 | 32:
    return DataType::F32;
  case ATTN_DL_FLOAT << 8 | 64:
    return DataType::F64;
  case ATTN_DL_BFLOAT << 8 | 16:
    return DataType::BF16;
  case ATTN_DL_FLOAT8_E4M3FN << 8 | 8:
    return DataType::F8E4M3FN;
  case ATTN_DL_FLOAT8_E5M2 << 8 | 8:
    return DataType::F8E5M2;
  case ATTN_DL_BOOL << 8 | 8:
    return DataType::I1;
  case ATTN_DL_INT << 8 | 8:
    return DataType::I8;
  case ATTN_DL_INT << 8 | 32:
    return DataType::I32;
  case ATTN_DL_INT << 8 | 64:
    return DataType::I64;
  default:
    return std::nullopt;
  }
}

/// "query", or "tensor 7" when the kernel has no such argument.
static std::string getName(const FunctionInfo &info, size_t index) {
  if (index < info.arguments.size())
    return info.arguments[index].name;
  index -= info.arguments.size();
  return index < info.results.size() ? info.results[index].name
                                     : "tensor " + std::to_string(index + info.arguments.size());
}

static attn_code checkHost(const std::string &name, const attn_tensor &tensor) {
  int32_t type = tensor.device.device_type;
  return type == ATTN_DL_CPU
             ? ATTN_OK
             : fail(name + ": expected a tensor in host memory, got DLPack device type " +
                    std::to_string(type));
}

/// Whether a kernel of the device can reach the memory that a tensor says it has.
static attn_code checkDevice(const FunctionInfo &info, size_t index, const attn_tensor &tensor) {
  int32_t type = tensor.device.device_type, id = tensor.device.device_id;
  bool isNumber = index < info.arguments.size() && info.arguments[index].isScalar;
  if (info.device == DeviceKind::CPU || isNumber)
    return checkHost(getName(info, index), tensor);
  bool isDevice = type == ATTN_DL_CUDA && id == info.ordinal;
  if (isDevice || type == ATTN_DL_CUDA_HOST || type == ATTN_DL_CUDA_MANAGED)
    return ATTN_OK;
  std::string wanted = ": expected a tensor on cuda:" + std::to_string(info.ordinal) + ", got ";
  if (type == ATTN_DL_CUDA)
    return fail(getName(info, index) + wanted + "one on cuda:" + std::to_string(id),
                "copy the tensor, or compile for that device");
  return fail(getName(info, index) + wanted + "DLPack device type " + std::to_string(type),
              "copy the tensor to the device");
}

static attn_code addView(const std::string &name, const attn_tensor &tensor,
                         llvm::SmallVectorImpl<LaunchArgument> &arguments) {
  std::optional<DataType> type = getDataType(tensor);
  if (!type)
    return fail(name +
                ": expected elements of f16, bf16, f32, f64, f8E4M3FN, f8E5M2, bool, i8, "
                "i32 or i64, got DLPack type code " +
                std::to_string(tensor.dtype.code) + " of " + std::to_string(tensor.dtype.bits) +
                " bits and " + std::to_string(tensor.dtype.lanes) + " lanes");
  char *data = static_cast<char *>(tensor.data);
  arguments.push_back(TensorView{data ? data + tensor.byte_offset : nullptr, *type, tensor.ndim,
                                 tensor.shape, tensor.strides});
  return ATTN_OK;
}

/// The arguments of a call, or why not.
static attn_code getArguments(const attn_kernel *kernel, const attn_tensor *const *tensors,
                              size_t count, llvm::SmallVectorImpl<LaunchArgument> &arguments) {
  if (!kernel || (count && !tensors))
    return failNull(!kernel ? "kernel" : "tensors");
  const FunctionInfo &info = kernel->function.getInfo();
  for (size_t i = 0; i < count; ++i) {
    if (!tensors[i])
      return failNull(getName(info, i));
    const attn_tensor &tensor = *tensors[i];
    if (attn_code code = checkDevice(info, i, tensor))
      return code;
    if (attn_code code = addView(getName(info, i), tensor, arguments))
      return code;
  }
  return ATTN_OK;
}

static LaunchArguments toSpan(llvm::ArrayRef<LaunchArgument> arguments) {
  return std::span<const LaunchArgument>(arguments.data(), arguments.size());
}

attn_code attn_run(const attn_kernel *kernel, const attn_tensor *const *tensors, size_t count,
                   void *stream) {
  return attn_run_in(kernel, tensors, count, stream, nullptr, 0);
}

static attn_code runIn(const attn_kernel *kernel, const attn_tensor *const *tensors, size_t count,
                       void *stream, Workspace workspace) {
  if (workspace.bytes && !workspace.data)
    return failNull("workspace");
  llvm::SmallVector<LaunchArgument, 8> arguments;
  if (attn_code code = getArguments(kernel, tensors, count, arguments))
    return code;
  return finish(kernel->function.run(toSpan(arguments), stream, workspace));
}

attn_code attn_run_in(const attn_kernel *kernel, const attn_tensor *const *tensors, size_t count,
                      void *stream, void *workspace, size_t bytes) {
  return runIn(kernel, tensors, count, stream, {workspace, bytes});
}

attn_code attn_run_planned(const attn_kernel *kernel, const attn_tensor *const *tensors,
                           size_t count, void *stream, void *workspace, size_t bytes) {
  return runIn(kernel, tensors, count, stream, {workspace, bytes, /*isPlanned=*/true});
}

attn_code attn_workspace_size(const attn_kernel *kernel, const attn_tensor *const *tensors,
                              size_t count, size_t *bytes) {
  if (!bytes)
    return failNull("bytes");
  llvm::SmallVector<LaunchArgument, 8> arguments;
  if (attn_code code = getArguments(kernel, tensors, count, arguments))
    return code;
  Result<size_t> most = kernel->function.getWorkspaceBytes(toSpan(arguments));
  if (!most)
    return finish(most.takeStatus());
  *bytes = *most;
  return ATTN_OK;
}

attn_code attn_prepare(const attn_kernel *kernel, const attn_tensor *const *tensors, size_t count) {
  llvm::SmallVector<LaunchArgument, 8> arguments;
  if (attn_code code = getArguments(kernel, tensors, count, arguments))
    return code;
  return finish(count ? kernel->function.prepare(toSpan(arguments)) : kernel->function.prepare());
}

/// Text of the caller's, or that there is no memory for it.
static attn_code give(const std::string &text, char **to) {
  *to = strdup(text.c_str());
  return *to ? ATTN_OK : finish({StatusCode::OutOfMemory, "text: expected memory", ""});
}

attn_code attn_choose_way(const attn_kernel *kernel, const attn_tensor *const *tensors,
                          size_t count, char **way) {
  if (!way)
    return failNull("way");
  *way = nullptr;
  llvm::SmallVector<LaunchArgument, 8> arguments;
  if (attn_code code = getArguments(kernel, tensors, count, arguments))
    return code;
  Result<std::string> name = kernel->function.chooseWay(toSpan(arguments));
  return name ? give(*name, way) : finish(name.takeStatus());
}

void attn_set_log(attn_log log, void *data) {
  if (!log)
    return setLog(nullptr);
  setLog([log, data](std::string_view line) { log(std::string(line).c_str(), data); });
}

attn_code attn_set_num_threads(int32_t count) {
  if (count < 0)
    return fail("threads: expected a number from 0 to 4096, got " + llvm::Twine(count));
  return finish(setNumThreads(static_cast<unsigned>(count)));
}

int32_t attn_get_num_threads(void) { return static_cast<int32_t>(getNumThreads()); }

attn_code attn_emit(const char *source, const attn_options *options, char **ptx, char **plan) {
  if (!source || !ptx || !plan)
    return failNull(!source ? "source" : !ptx ? "ptx" : "plan");
  *ptx = *plan = nullptr;
  Result<KernelImage> image = emit(source, getOptions(options));
  if (!image)
    return finish(image.takeStatus());
  *ptx = strdup(image->ptx.c_str());
  *plan = strdup(image->plan.c_str());
  if (*ptx && *plan)
    return ATTN_OK;
  attn_string_free(*ptx);
  attn_string_free(*plan);
  *ptx = *plan = nullptr;
  return finish({StatusCode::OutOfMemory, "ptx: expected memory", ""});
}

attn_code attn_explain(const char *source, const attn_options *options, const char *until,
                       char **text) {
  return attn_explain_way(source, options, until, "", text);
}

attn_code attn_explain_way(const char *source, const attn_options *options, const char *until,
                           const char *way, char **text) {
  if (!source || !until || !way || !text)
    return failNull(!source ? "source" : !until ? "until" : !way ? "way" : "text");
  *text = nullptr;
  Result<std::string> explanation = explain(source, getOptions(options), until, way);
  return explanation ? give(*explanation, text) : finish(explanation.takeStatus());
}

void attn_string_free(char *text) { std::free(text); }

attn_code attn_mask_ranges(const char *source, const attn_tensor *const *arguments, size_t count,
                           int64_t tile_rows, int64_t tile_keys, attn_mask_range *ranges,
                           size_t capacity) {
  if (!source || (count && !arguments) || (capacity && !ranges))
    return failNull(!source ? "source" : count && !arguments ? "arguments" : "ranges");
  llvm::SmallVector<LaunchArgument, 8> given;
  for (size_t i = 0; i < count; ++i) {
    std::string name = "argument " + std::to_string(i);
    if (!arguments[i])
      return failNull(name);
    // Of query, key and value no memory is read.
    if (attn_code code = i < 3 ? ATTN_OK : checkHost(name, *arguments[i]))
      return code;
    if (attn_code code = addView(name, *arguments[i], given))
      return code;
  }
  Result<std::vector<MaskRange>> found =
      findMaskRanges(source, toSpan(given), tile_rows, tile_keys);
  if (!found)
    return finish(found.takeStatus());
  if (found->size() > capacity)
    return fail("capacity: expected room for " + std::to_string(found->size()) + " ranges, got " +
                std::to_string(capacity));
  for (auto [i, range] : llvm::enumerate(*found))
    ranges[i] = {range.begin, range.fullBegin, range.fullEnd, range.end};
  return ATTN_OK;
}
