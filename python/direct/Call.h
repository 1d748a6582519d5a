//===- Call.h - what calls of one kernel have in common ----------------------------*- C++ -*-===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_PYTHON_DIRECT_CALL_H
#define ATTN_PYTHON_DIRECT_CALL_H

#include "Tensors.h"

namespace direct {

/// Adds the class `Call` to the module; -1 with an exception.
int addCallClass(PyObject *module);

/// Python tells by a flag what functions take.
template <typename Function> PyCFunction erase(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

} // namespace direct

#endif // ATTN_PYTHON_DIRECT_CALL_H
