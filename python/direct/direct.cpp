//===- direct.cpp - calls of PyTorch's plain tensors ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The module `_direct`, on CPython's stable ABI: one build for CPython 3.10 and later. It knows
// PyTorch by DLPack's table of functions alone (__dlpack_c_exchange_api__), and takes the calls
// that most calls are: plain tensors that nobody watches, where they should be, of the types that
// the kernel was compiled for. Of all others it says None: python/attn takes any call, without this
// module too, and says what is wrong with it. So there are hardly any messages here.
//
//===----------------------------------------------------------------------------------------===//

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "attn-c/attn.h"
#include <algorithm>
#include <cmath>
#include <utility>

//===----------------------------------------------------------------------------------------===//
// DLPack's table of functions
//===----------------------------------------------------------------------------------------===//

namespace {
/// DLPackExchangeAPI of DLPack 1.3. What is not called here has no type.
struct ExchangeAPI {
  uint32_t major, minor;
  ExchangeAPI *previous;
  void *allocate, *exportManaged, *importManaged;
  /// Writes where the memory of an object is; both return 0, or set an exception.
  int (*describe)(void *object, attn_tensor *tensor);
  int (*findStream)(int32_t deviceType, int32_t deviceId, void **stream);
};

constexpr uint32_t kMajor = 1;
constexpr const char *kCapsule = "dlpack_exchange_api";

//===----------------------------------------------------------------------------------------===//
// What a call is compared with
//===----------------------------------------------------------------------------------------===//

/// An owner of a reference.
class Ref {
public:
  explicit Ref(PyObject *object = nullptr) : object(object) {}
  Ref(const Ref &) = delete;
  Ref &operator=(const Ref &) = delete;
  ~Ref() { Py_XDECREF(object); }
  PyObject *get() const { return object; }
  PyObject *take() { return std::exchange(object, nullptr); }
  explicit operator bool() const { return object != nullptr; }

private:
  PyObject *object;
};

constexpr int kMostDims = 8, kMostCaptures = 16;

struct TensorType {
  int code, bits, rank;
};

constexpr TensorType kSinkType = {ATTN_DL_FLOAT, 32, 1}, kLseType = {ATTN_DL_FLOAT, 32, 3};

struct Capture {
  TensorType type;
  /// In what a call gives.
  int position;
  int64_t least[kMostDims];
};

/// What every call of one kernel has in common.
struct Call {
  PyObject_HEAD const attn_kernel *kernel;
  const ExchangeAPI *api;
  /// Of PyTorch. `watchers` are functions, each true where somebody looks; `countThreads` is None
  /// on a GPU.
  PyObject *tensorClass, *parameterClass, *dtype, *lseDtype, *emptyStrided, *watchers, *isRecording,
      *forwardAD, *countThreads;
  /// Names of attributes, which are found faster when there is one object of each.
  PyObject *requiresGrad, *isNeg, *currentLevel;
  /// As DLPack names it.
  int deviceType, deviceId;
  TensorType type;
  long long valueDim;
  int hasScale, hasSink, returnLse, hasComplexBf16, numCaptures;
  Capture captures[kMostCaptures];
};

constexpr PyObject *Call::*kReferences[] = {
    &Call::tensorClass,  &Call::parameterClass, &Call::dtype,       &Call::lseDtype,
    &Call::emptyStrided, &Call::watchers,       &Call::isRecording, &Call::forwardAD,
    &Call::countThreads, &Call::requiresGrad,   &Call::isNeg,       &Call::currentLevel};

/// The tensors of one call, on the stack.
struct Tensors {
  static constexpr int kMost = 40;
  int count = 0;
  /// Whether autograd records calls of one of them.
  bool isRecorded = false;
  float scale;
  attn_tensor tensors[kMost];
  const attn_tensor *pointers[kMost];
  int64_t extents[kMost][2 * kMostDims];
};
} // namespace

/// Yes, and no exception, where asking raises one: then Python has to take the call.
static bool isTrue(PyObject *owned) {
  Ref object(owned);
  int result = object ? PyObject_IsTrue(object.get()) : -1;
  if (result < 0)
    PyErr_Clear();
  return result != 0;
}

//===----------------------------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------------------------===//

/// Adds a tensor, unless it is none that the kernel takes as it is. `isSwapped` for one of
/// (B, S, H, D).
static bool add(const Call &call, Tensors &all, PyObject *x, TensorType type, bool isSwapped) {
  auto *kind = reinterpret_cast<PyObject *>(Py_TYPE(x));
  if (kind != call.tensorClass && kind != call.parameterClass)
    return false;
  attn_tensor &tensor = all.tensors[all.count];
  if (call.api->describe(x, &tensor) != 0) {
    // One without memory, such as those of torch.func.
    PyErr_Clear();
    return false;
  }
  if (tensor.device.device_type != call.deviceType || tensor.device.device_id != call.deviceId ||
      tensor.dtype.code != type.code || tensor.dtype.bits != type.bits || tensor.dtype.lanes != 1 ||
      tensor.ndim != type.rank || !tensor.strides)
    return false;
  if (tensor.dtype.code == ATTN_DL_BOOL)
    tensor.dtype.code = ATTN_DL_INT; // Kernels read bools as bytes.
  all.isRecorded |= isTrue(PyObject_GetAttr(x, call.requiresGrad));
  // Parts of complex tensors may be views that say to negate what is read.
  bool isPart = type.code == ATTN_DL_FLOAT || (type.code == ATTN_DL_BFLOAT && call.hasComplexBf16);
  if (isPart && isTrue(PyObject_CallMethodObjArgs(x, call.isNeg, nullptr)))
    return false;
  // A copy: while the kernel runs, another thread may give the tensor another shape.
  int64_t *extents = all.extents[all.count];
  std::copy_n(tensor.shape, type.rank, extents);
  std::copy_n(tensor.strides, type.rank, extents + kMostDims);
  if (isSwapped) {
    std::swap(extents[1], extents[2]);
    std::swap(extents[kMostDims + 1], extents[kMostDims + 2]);
  }
  tensor.shape = extents;
  tensor.strides = extents + kMostDims;
  all.pointers[all.count++] = &tensor;
  return true;
}

static bool addScale(Tensors &all, PyObject *scale) {
  if (!PyFloat_CheckExact(scale))
    return false;
  double number = PyFloat_AsDouble(scale);
  all.scale = static_cast<float>(number);
  if (std::isinf(all.scale) && !std::isinf(number))
    return false;
  attn_tensor &tensor = all.tensors[all.count];
  tensor = {&all.scale, {ATTN_DL_CPU, 0}, 0, {ATTN_DL_FLOAT, 32, 1}, all.extents[all.count],
            nullptr,    /*byte_offset=*/0};
  all.pointers[all.count++] = &tensor;
  return true;
}

static bool addCapture(const Call &call, Tensors &all, PyObject *captured, const Capture &capture) {
  PyObject *x = PyList_GetItem(captured, capture.position);
  if (!x) {
    PyErr_Clear();
    return false;
  }
  if (!add(call, all, x, capture.type, /*isSwapped=*/false))
    return false;
  const int64_t *shape = all.extents[all.count - 1];
  return std::equal(shape, shape + capture.type.rank, capture.least,
                    [](int64_t extent, int64_t least) { return extent >= least; });
}

/// Whether anybody looks at what becomes of the tensors.
static bool isWatched(const Call &call, const Tensors &all, bool isOperator) {
  // Tangents, which even those who are behind the dispatcher may have.
  Ref level(PyObject_GetAttr(call.forwardAD, call.currentLevel));
  if (!level || PyLong_AsLong(level.get()) >= 0) {
    PyErr_Clear();
    return true;
  }
  if (isOperator)
    return false;
  if (all.isRecorded && isTrue(PyObject_CallNoArgs(call.isRecording)))
    return true;
  for (Py_ssize_t i = 0, count = PyTuple_Size(call.watchers); i < count; ++i)
    if (isTrue(PyObject_CallNoArgs(PyTuple_GetItem(call.watchers, i))))
      return true;
  return false;
}

/// A new tensor in row-major order, added as a result; null with an exception.
static PyObject *addResult(const Call &call, Tensors &all, const int64_t *shape, TensorType type,
                           PyObject *dtype, bool isSwapped) {
  Ref extents(PyTuple_New(type.rank)), strides(PyTuple_New(type.rank));
  if (!extents || !strides)
    return nullptr;
  int64_t stride = 1;
  for (int i = type.rank - 1; i >= 0; --i) {
    PyTuple_SetItem(extents.get(), i, PyLong_FromLongLong(shape[i]));
    PyTuple_SetItem(strides.get(), i, PyLong_FromLongLong(stride));
    stride *= shape[i];
  }
  if (PyErr_Occurred())
    return nullptr;
  Ref result(PyObject_CallFunctionObjArgs(call.emptyStrided, extents.get(), strides.get(), dtype,
                                          nullptr));
  if (!result)
    return nullptr;
  if (!add(call, all, result.get(), type, isSwapped)) {
    PyErr_SetString(PyExc_TypeError, "attn: expected a plain tensor of PyTorch's allocator");
    return nullptr;
  }
  return result.take();
}

static attn_code launch(const attn_kernel *kernel, const Tensors &all, void *stream) {
  attn_code code;
  Py_BEGIN_ALLOW_THREADS code =
      attn_run(kernel, all.pointers, static_cast<size_t>(all.count), stream);
  Py_END_ALLOW_THREADS return code;
}

/// On PyTorch's current stream, or by as many threads as it uses. Whether the kernel ran, or was
/// queued.
static bool launch(const Call &call, const Tensors &all) {
  void *stream = nullptr;
  if (call.countThreads == Py_None) {
    if (call.api->findStream(call.deviceType, call.deviceId, &stream) != 0)
      return PyErr_Clear(), false;
  } else {
    Ref threads(PyObject_CallNoArgs(call.countThreads));
    long count = threads ? PyLong_AsLong(threads.get()) : -1;
    if (count < 0)
      return PyErr_Clear(), false;
    if (count != attn_get_num_threads())
      attn_set_num_threads(static_cast<int32_t>(count));
  }
  return launch(call.kernel, all, stream) == ATTN_OK;
}

/// Whether all that the call gives is what the kernel takes.
static bool addArguments(const Call &call, Tensors &all, PyObject *const *arguments,
                         bool isRowsFirst) {
  for (int i = 0; i < 3; ++i)
    if (!add(call, all, arguments[i], call.type, isRowsFirst))
      return false;
  PyObject *scale = arguments[3], *sink = arguments[4], *captured = arguments[5];
  if ((scale != Py_None) != bool(call.hasScale) || (sink != Py_None) != bool(call.hasSink))
    return false;
  if (call.hasScale && !addScale(all, scale))
    return false;
  if (call.hasSink && !add(call, all, sink, kSinkType, /*isSwapped=*/false))
    return false;
  for (int i = 0; i < call.numCaptures; ++i)
    if (!addCapture(call, all, captured, call.captures[i]))
      return false;
  return true;
}

/// The call with results that it makes: they, or null with an exception.
static PyObject *runAnew(const Call &call, Tensors &all, bool isRowsFirst) {
  const int64_t *query = all.extents[0];
  int64_t b = query[0], h = query[1], m = query[2];
  int64_t shape[] = {b, isRowsFirst ? m : h, isRowsFirst ? h : m, call.valueDim};
  Ref output(addResult(call, all, shape, call.type, call.dtype, isRowsFirst));
  if (!output)
    return nullptr;
  int64_t rows[] = {b, h, m};
  Ref lse(call.returnLse ? addResult(call, all, rows, kLseType, call.lseDtype, /*isSwapped=*/false)
                         : nullptr);
  if (call.returnLse && !lse)
    return nullptr;
  if (!launch(call, all))
    Py_RETURN_NONE;
  return lse ? PyTuple_Pack(2, output.get(), lse.get()) : output.take();
}

/// The call with results that the caller gives: they.
static PyObject *runInto(const Call &call, Tensors &all, bool isRowsFirst, PyObject *results) {
  PyObject *output = results, *lse = nullptr;
  if (call.returnLse &&
      (!PyTuple_CheckExact(results) || !PyArg_ParseTuple(results, "OO", &output, &lse))) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  if (!add(call, all, output, call.type, isRowsFirst) ||
      (lse && !add(call, all, lse, kLseType, /*isSwapped=*/false)) || all.isRecorded ||
      !launch(call, all))
    Py_RETURN_NONE;
  Py_INCREF(results);
  return results;
}

PyDoc_STRVAR(runDoc,
             "run(q, k, v, scale, sink, captured, rows_first, is_operator, out)\n\n"
             "The output, or (output, lse), which is `out` where that is not None; None for a call "
             "that is not taken here, or that failed.");

static PyObject *run(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 9) {
    PyErr_Format(PyExc_TypeError, "run: expected 9 arguments, got %zd", count);
    return nullptr;
  }
  const Call &call = *reinterpret_cast<Call *>(self);
  bool isRowsFirst = arguments[6] == Py_True, isOperator = arguments[7] == Py_True;
  Tensors all;
  if (!addArguments(call, all, arguments, isRowsFirst) || isWatched(call, all, isOperator))
    Py_RETURN_NONE;
  return arguments[8] == Py_None ? runAnew(call, all, isRowsFirst)
                                 : runInto(call, all, isRowsFirst, arguments[8]);
}

//===----------------------------------------------------------------------------------------===//
// Calls whose tensors are described
//===----------------------------------------------------------------------------------------===//

static bool addDescribed(Tensors &all, PyObject *description) {
  unsigned long long address;
  int deviceType, deviceId, code, bits;
  PyObject *shape, *strides;
  if (!PyArg_ParseTuple(description, "KiiiiO!O!", &address, &deviceType, &deviceId, &code, &bits,
                        &PyTuple_Type, &shape, &PyTuple_Type, &strides))
    return false;
  auto rank = static_cast<int>(PyTuple_Size(shape));
  if (rank > kMostDims || PyTuple_Size(strides) != rank)
    return false;
  int64_t *extents = all.extents[all.count];
  for (int i = 0; i < rank; ++i) {
    extents[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    extents[kMostDims + i] = PyLong_AsLongLong(PyTuple_GetItem(strides, i));
  }
  attn_tensor &tensor = all.tensors[all.count];
  tensor = {reinterpret_cast<void *>(address),
            {deviceType, deviceId},
            rank,
            {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1},
            extents,
            extents + kMostDims,
            /*byte_offset=*/0};
  all.pointers[all.count++] = &tensor;
  return !PyErr_Occurred();
}

PyDoc_STRVAR(launchDoc,
             "launch(kernel, tensors, stream)\n\n"
             "The code of attn_run; None where there are more tensors or dimensions than it has "
             "room for. Of each tensor (address, device_type, device_id, code, bits, shape, "
             "strides).");

static PyObject *launchDescribed(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 3) {
    PyErr_Format(PyExc_TypeError, "launch: expected 3 arguments, got %zd", count);
    return nullptr;
  }
  auto *kernel = static_cast<const attn_kernel *>(PyLong_AsVoidPtr(arguments[0]));
  void *stream = arguments[2] == Py_None ? nullptr : PyLong_AsVoidPtr(arguments[2]);
  Py_ssize_t size = PyList_Size(arguments[1]);
  if (PyErr_Occurred())
    return nullptr;
  if (size > Tensors::kMost)
    Py_RETURN_NONE;
  Tensors all;
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (addDescribed(all, PyList_GetItem(arguments[1], i)))
      continue;
    if (PyErr_Occurred())
      return nullptr;
    Py_RETURN_NONE;
  }
  return PyLong_FromLong(launch(kernel, all, stream));
}

//===----------------------------------------------------------------------------------------===//
// The class
//===----------------------------------------------------------------------------------------===//

/// The newest table whose layout is known; null, and no exception, where there is none.
static const ExchangeAPI *findAPI(PyObject *capsule) {
  auto *api = static_cast<ExchangeAPI *>(PyCapsule_GetPointer(capsule, kCapsule));
  while (api && api->major > kMajor)
    api = api->previous;
  return api && api->major == kMajor ? api : nullptr;
}

/// (code, bits, rank, position, least extents) of each, as far as there is room.
static bool readCaptures(Call &call, PyObject *captures) {
  Py_ssize_t count = PyTuple_Size(captures);
  if (count > kMostCaptures) {
    PyErr_Format(PyExc_ValueError, "captures: expected at most %d, got %zd", kMostCaptures, count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    Capture &capture = call.captures[call.numCaptures++];
    PyObject *least;
    if (!PyArg_ParseTuple(PyTuple_GetItem(captures, i), "iiiiO!", &capture.type.code,
                          &capture.type.bits, &capture.type.rank, &capture.position, &PyTuple_Type,
                          &least))
      return false;
    if (capture.type.rank > kMostDims || PyTuple_Size(least) != capture.type.rank) {
      PyErr_Format(PyExc_ValueError, "captures: expected at most %d dimensions", kMostDims);
      return false;
    }
    for (int d = 0; d < capture.type.rank; ++d)
      capture.least[d] = PyLong_AsLongLong(PyTuple_GetItem(least, d));
  }
  return !PyErr_Occurred();
}

/// Python tells by a flag what functions take.
template <typename Function> static PyCFunction erase(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

static void dealloc(PyObject *self) {
  for (PyObject *Call::*reference : kReferences)
    Py_XDECREF(reinterpret_cast<Call *>(self)->*reference);
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyObject *create(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static const char *names[] = {"kernel",
                                "device",
                                "api",
                                "tensor_class",
                                "parameter_class",
                                "dtype",
                                "lse_dtype",
                                "empty_strided",
                                "watchers",
                                "is_recording",
                                "forward_ad",
                                "count_threads",
                                "code",
                                "bits",
                                "value_dim",
                                "has_scale",
                                "has_sink",
                                "return_lse",
                                "has_complex_bf16",
                                "captures",
                                nullptr};
  Ref self(reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0));
  if (!self)
    return nullptr;
  auto &call = *reinterpret_cast<Call *>(self.get());
  PyObject *kernel, *api, *captures;
  int device;
  if (!PyArg_ParseTupleAndKeywords(
          arguments, keywords, "O!iOOOOOOO!OOOiiLppppO!:Call", const_cast<char **>(names),
          &PyLong_Type, &kernel, &device, &api, &call.tensorClass, &call.parameterClass,
          &call.dtype, &call.lseDtype, &call.emptyStrided, &PyTuple_Type, &call.watchers,
          &call.isRecording, &call.forwardAD, &call.countThreads, &call.type.code, &call.type.bits,
          &call.valueDim, &call.hasScale, &call.hasSink, &call.returnLse, &call.hasComplexBf16,
          &PyTuple_Type, &captures)) {
    // They are borrowed so far.
    for (PyObject *Call::*reference : kReferences)
      call.*reference = nullptr;
    return nullptr;
  }
  for (PyObject *Call::*reference : kReferences)
    Py_XINCREF(call.*reference);
  call.requiresGrad = PyUnicode_InternFromString("requires_grad");
  call.isNeg = PyUnicode_InternFromString("is_neg");
  call.currentLevel = PyUnicode_InternFromString("_current_level");
  call.kernel = static_cast<const attn_kernel *>(PyLong_AsVoidPtr(kernel));
  call.api = findAPI(api);
  call.deviceType = device < 0 ? ATTN_DL_CPU : ATTN_DL_CUDA;
  call.deviceId = std::max(device, 0);
  call.type.rank = 4;
  if (PyErr_Occurred() || !readCaptures(call, captures))
    return nullptr;
  if (!call.api) {
    PyErr_SetString(PyExc_ValueError, "api: expected a table of DLPack 1");
    return nullptr;
  }
  return self.take();
}

static PyMethodDef methods[] = {{"run", erase(run), METH_FASTCALL, runDoc},
                                {nullptr, nullptr, 0, nullptr}};

static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(create)},
                              {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                              {Py_tp_methods, methods},
                              {0, nullptr}};

static PyType_Spec spec = {"_direct.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT, slots};

static int addClass(PyObject *module) {
  Ref type(PyType_FromSpec(&spec));
  return type ? PyModule_AddObjectRef(module, "Call", type.get()) : -1;
}

static PyModuleDef_Slot moduleSlots[] = {{Py_mod_exec, reinterpret_cast<void *>(addClass)},
                                         {0, nullptr}};

static PyMethodDef functions[] = {{"launch", erase(launchDescribed), METH_FASTCALL, launchDoc},
                                  {nullptr, nullptr, 0, nullptr}};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_direct", nullptr, 0,      functions,
                             moduleSlots,           nullptr,   nullptr, nullptr};

PyMODINIT_FUNC PyInit__direct() { return PyModuleDef_Init(&module); }
