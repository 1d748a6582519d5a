//===- Tensors.h - the tensors of one call -----------------------------------------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_PYTHON_DIRECT_TENSORS_H
#define ATTN_PYTHON_DIRECT_TENSORS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "attn-c/attn.h"
#include <algorithm>
#include <utility>

namespace direct {

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

/// Yes, and no exception, where asking raises one: then Python has to take the call.
inline bool isTrue(PyObject *owned) {
  Ref object(owned);
  int result = object ? PyObject_IsTrue(object.get()) : -1;
  if (result < 0)
    PyErr_Clear();
  return result != 0;
}

/// Whether one of some functions says yes.
inline bool isAnyTrue(PyObject *functions) {
  for (Py_ssize_t i = 0, count = PyTuple_Size(functions); i < count; ++i)
    if (isTrue(PyObject_CallNoArgs(PyTuple_GetItem(functions, i))))
      return true;
  return false;
}

inline PyObject *makeTuple(const int64_t *numbers, int count) {
  Ref tuple(PyTuple_New(count));
  for (int i = 0; tuple && i < count; ++i) {
    PyObject *number = PyLong_FromLongLong(numbers[i]);
    if (!number || PyTuple_SetItem(tuple.get(), i, number) != 0)
      return nullptr;
  }
  return tuple.take();
}

constexpr int kMostDims = 8;

/// As DLPack names it.
struct TensorType {
  int code, bits, rank;
};

/// How an array of a caller becomes a tensor of the kernel.
struct Place {
  TensorType type;
  /// Of (B, S, H, D), which the kernel takes as (B, H, S, D).
  bool isSwapped = false;
  bool isWritten = false;
};

/// The tensors of one call, on the stack.
class Tensors {
public:
  static constexpr int kMost = 48;

  /// What describes the next one, until it is taken.
  attn_tensor &next() { return tensors[count]; }
  /// With a copy of its extents: while the kernel runs, another thread may give the array others.
  void take(bool isSwapped) {
    attn_tensor &tensor = tensors[count];
    int64_t *copy = extents[count];
    std::copy_n(tensor.shape, tensor.ndim, copy);
    std::copy_n(tensor.strides, tensor.ndim, copy + kMostDims);
    if (isSwapped) {
      std::swap(copy[1], copy[2]);
      std::swap(copy[kMostDims + 1], copy[kMostDims + 2]);
    }
    tensor.shape = copy;
    tensor.strides = copy + kMostDims;
    pointers[count++] = &tensor;
  }
  void takeScale(float number) {
    scale = number;
    int64_t *none = extents[count];
    next() = {&scale, {ATTN_DL_CPU, 0}, 0, {ATTN_DL_FLOAT, 32, 1}, none, none, /*byte_offset=*/0};
    take(/*isSwapped=*/false);
  }
  const int64_t *firstShape() const { return extents[0]; }
  const int64_t *shapeOf(int index) const { return extents[index]; }
  const int64_t *lastShape() const { return extents[count - 1]; }

  attn_code run(const attn_kernel *kernel, void *stream) const {
    attn_code code;
    Py_BEGIN_ALLOW_THREADS code = attn_run(kernel, pointers, static_cast<size_t>(count), stream);
    Py_END_ALLOW_THREADS return code;
  }

  /// Whether autograd records calls of one of them.
  bool isRecorded = false;

private:
  int count = 0;
  float scale;
  attn_tensor tensors[kMost];
  const attn_tensor *pointers[kMost];
  int64_t extents[kMost][2 * kMostDims];
};

} // namespace direct

#endif // ATTN_PYTHON_DIRECT_TENSORS_H
