//===- Torch.cpp - tensors of PyTorch -------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "Torch.h"

using namespace direct;

/// DLPackExchangeAPI of DLPack 1.3. What is not called here has no type.
struct direct::ExchangeAPI {
  uint32_t major, minor;
  ExchangeAPI *previous;
  void *allocate, *exportManaged, *importManaged;
  /// Writes where the memory of an object is; both return 0, or set an exception.
  int (*describe)(void *object, attn_tensor *tensor);
  int (*findStream)(int32_t deviceType, int32_t deviceId, void **stream);
};

static constexpr uint32_t kMajor = 1;
static constexpr const char *kCapsule = "dlpack_exchange_api";

static constexpr PyObject *Torch::*kReferences[] = {
    &Torch::tensorClass,  &Torch::parameterClass, &Torch::dtype,       &Torch::lseDtype,
    &Torch::emptyStrided, &Torch::watchers,       &Torch::isRecording, &Torch::forwardAD};
static constexpr PyObject *Torch::*kNames[] = {&Torch::requiresGrad, &Torch::isNeg,
                                               &Torch::currentLevel};

/// The newest table whose layout is known, if there is one.
static const ExchangeAPI *findAPI(ExchangeAPI *api) {
  while (api && api->major > kMajor)
    api = api->previous;
  return api && api->major == kMajor ? api : nullptr;
}

bool Torch::parse(PyObject *given) {
  PyObject *capsule;
  Torch parsed = *this;
  if (!PyArg_ParseTuple(given, "OOOOOOO!OOpii:torch", &capsule, &parsed.tensorClass,
                        &parsed.parameterClass, &parsed.dtype, &parsed.lseDtype,
                        &parsed.emptyStrided, &PyTuple_Type, &parsed.watchers, &parsed.isRecording,
                        &parsed.forwardAD, &parsed.hasComplexBf16, &parsed.deviceType,
                        &parsed.deviceId))
    return false;
  auto *table = static_cast<ExchangeAPI *>(PyCapsule_GetPointer(capsule, kCapsule));
  if (!table)
    return false;
  *this = parsed;
  for (PyObject *Torch::*reference : kReferences)
    Py_INCREF(this->*reference);
  requiresGrad = PyUnicode_InternFromString("requires_grad");
  isNeg = PyUnicode_InternFromString("is_neg");
  currentLevel = PyUnicode_InternFromString("_current_level");
  api = findAPI(table);
  return requiresGrad && isNeg && currentLevel;
}

void Torch::release() {
  for (PyObject *Torch::*reference : kReferences)
    Py_XDECREF(this->*reference);
  for (PyObject *Torch::*name : kNames)
    Py_XDECREF(this->*name);
}

bool Torch::owns(PyObject *x) const {
  auto *kind = reinterpret_cast<PyObject *>(Py_TYPE(x));
  return api && (kind == tensorClass || kind == parameterClass);
}

bool Torch::add(Tensors &all, PyObject *x, Place place) const {
  if (!owns(x))
    return false;
  attn_tensor &tensor = all.next();
  if (api->describe(x, &tensor) != 0) {
    // One without memory, such as those of torch.func.
    PyErr_Clear();
    return false;
  }
  auto [code, bits, rank] = place.type;
  if (tensor.device.device_type != deviceType || tensor.device.device_id != deviceId ||
      tensor.dtype.code != code || tensor.dtype.bits != bits || tensor.dtype.lanes != 1 ||
      tensor.ndim != rank || !tensor.strides)
    return false;
  if (code == ATTN_DL_BOOL)
    tensor.dtype.code = ATTN_DL_INT; // Kernels read bools as bytes.
  // Before PyTorch is asked more, which may let other threads run.
  all.take(place.isSwapped);
  all.isRecorded |= isTrue(PyObject_GetAttr(x, requiresGrad));
  // Parts of complex tensors may be views that say to negate what is read.
  bool isPart = code == ATTN_DL_FLOAT || (code == ATTN_DL_BFLOAT && hasComplexBf16);
  return !isPart || !isTrue(PyObject_CallMethodObjArgs(x, isNeg, nullptr));
}

bool Torch::isWatched(const Tensors &all, bool isOperator) const {
  // Tangents, which even those who are behind the dispatcher may have.
  Ref level(PyObject_GetAttr(forwardAD, currentLevel));
  long number = level ? PyLong_AsLong(level.get()) : -1;
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return true;
  }
  if (number >= 0)
    return true;
  if (isOperator)
    return false;
  return (all.isRecorded && isTrue(PyObject_CallNoArgs(isRecording))) || isAnyTrue(watchers);
}

PyObject *Torch::makeEmpty(const int64_t *shape, int rank, bool isLse) const {
  int64_t strides[kMostDims];
  for (int64_t i = rank - 1, stride = 1; i >= 0; stride *= shape[i--])
    strides[i] = stride;
  Ref extents(makeTuple(shape, rank)), steps(makeTuple(strides, rank));
  if (!extents || !steps)
    return nullptr;
  return PyObject_CallFunctionObjArgs(emptyStrided, extents.get(), steps.get(),
                                      isLse ? lseDtype : dtype, nullptr);
}

bool Torch::findStream(void **stream) const {
  if (api->findStream(deviceType, deviceId, stream) == 0)
    return true;
  PyErr_Clear();
  return false;
}
