//===- NumPy.h - arrays of NumPy ---------------------------------------------------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_PYTHON_DIRECT_NUMPY_H
#define ATTN_PYTHON_DIRECT_NUMPY_H

#include "Tensors.h"

namespace direct {

/// What calls of one kernel ask of NumPy: by the struct of its array interface, and by functions of
/// Python. Of zeros until it is parsed; its owner releases it.
struct NumPy {
  /// Null where it is not served. `bf16` is the dtype of ml_dtypes, or None.
  PyObject *arrayClass, *dtype, *lseDtype, *bf16, *empty, *watchers;
  /// Names of attributes, which are found faster when there is one object of each.
  PyObject *arrayStruct, *dtypeName;

  /// Of a tuple; false with an exception.
  bool parse(PyObject *given);
  void release();
  bool owns(PyObject *x) const;
  /// Takes an array, unless it is none that the kernel takes as it is.
  bool add(Tensors &all, PyObject *x, Place place) const;
  bool isWatched(const Tensors &, bool) const { return isAnyTrue(watchers); }
  /// A new array in row-major order; null with an exception.
  PyObject *makeEmpty(const int64_t *shape, int rank, bool isLse) const;
  /// Arrays are on the CPU.
  bool findStream(void **) const { return false; }

private:
  bool hasType(PyObject *x, char kind, int size, TensorType type) const;
};

} // namespace direct

#endif // ATTN_PYTHON_DIRECT_NUMPY_H
