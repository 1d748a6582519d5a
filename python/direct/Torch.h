//===- Torch.h - tensors of PyTorch ------------------------------------------------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_PYTHON_DIRECT_TORCH_H
#define ATTN_PYTHON_DIRECT_TORCH_H

#include "Tensors.h"

namespace direct {

struct ExchangeAPI;

/// What calls of one kernel ask of PyTorch: by DLPack's table of functions, and by functions of
/// Python. Of zeros until it is parsed; its owner releases it.
struct Torch {
  /// Null where it is not served.
  const ExchangeAPI *api;
  /// As DLPack names it.
  int deviceType, deviceId;
  /// `watchers` are functions, each true where somebody looks.
  PyObject *tensorClass, *parameterClass, *dtype, *lseDtype, *emptyStrided, *watchers, *isRecording,
      *forwardAD;
  int hasComplexBf16;
  /// Names of attributes, which are found faster when there is one object of each.
  PyObject *requiresGrad, *isNeg, *currentLevel;

  /// Of a tuple; false with an exception. A table of another version is not served.
  bool parse(PyObject *given);
  void release();
  bool owns(PyObject *x) const;
  /// Takes a tensor, unless it is none that the kernel takes as it is.
  bool add(Tensors &all, PyObject *x, Place place) const;
  /// Whether anybody looks at what becomes of the tensors.
  bool isWatched(const Tensors &all, bool isOperator) const;
  /// A new tensor in row-major order; null with an exception.
  PyObject *makeEmpty(const int64_t *shape, int rank, bool isLse) const;
  /// PyTorch's current one; false, and no exception, where there is none.
  bool findStream(void **stream) const;
};

} // namespace direct

#endif // ATTN_PYTHON_DIRECT_TORCH_H
