//===- NumPy.cpp - arrays of NumPy ----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// By __array_struct__, a capsule that NumPy promises since its first versions and that needs none
// of its headers. Python's buffers are in the stable ABI from 3.11 only, and neither they nor
// DLPack know bfloat16 of ml_dtypes; NumPy's capsules of DLPack are refused for arrays that are not
// writable.
//
//===----------------------------------------------------------------------------------------===//

#include "NumPy.h"

using namespace direct;

namespace {
/// PyArrayInterface of NumPy's array interface protocol. Strides are in bytes.
struct ArrayInterface {
  int version, rank;
  char kind;
  int itemSize, flags;
  intptr_t *shape, *strides;
  void *data;
  PyObject *description;
};
} // namespace

static constexpr int kVersion = 2, kAligned = 0x100, kNotSwapped = 0x200, kWritable = 0x400;

static constexpr PyObject *NumPy::*kReferences[] = {&NumPy::arrayClass, &NumPy::dtype,
                                                    &NumPy::lseDtype,   &NumPy::bf16,
                                                    &NumPy::empty,      &NumPy::watchers};

bool NumPy::parse(PyObject *given) {
  NumPy parsed = *this;
  if (!PyArg_ParseTuple(given, "OOOOOO!:numpy", &parsed.arrayClass, &parsed.dtype, &parsed.lseDtype,
                        &parsed.bf16, &parsed.empty, &PyTuple_Type, &parsed.watchers))
    return false;
  *this = parsed;
  for (PyObject *NumPy::*reference : kReferences)
    Py_INCREF(this->*reference);
  arrayStruct = PyUnicode_InternFromString("__array_struct__");
  dtypeName = PyUnicode_InternFromString("dtype");
  return arrayStruct && dtypeName;
}

void NumPy::release() {
  for (PyObject *NumPy::*reference : kReferences)
    Py_XDECREF(this->*reference);
  Py_XDECREF(arrayStruct);
  Py_XDECREF(dtypeName);
}

bool NumPy::owns(PyObject *x) const {
  return arrayClass && reinterpret_cast<PyObject *>(Py_TYPE(x)) == arrayClass;
}

bool NumPy::hasType(PyObject *x, char kind, int size, TensorType type) const {
  if (size * 8 != type.bits)
    return false;
  switch (type.code) {
  case ATTN_DL_FLOAT:
    return kind == 'f';
  case ATTN_DL_INT:
    return kind == 'i';
  case ATTN_DL_BOOL:
    return kind == 'b';
  case ATTN_DL_BFLOAT: {
    // Its kind is that of all types that NumPy has not itself.
    Ref found(PyObject_GetAttr(x, dtypeName));
    PyErr_Clear();
    return found.get() == bf16;
  }
  default:
    return false;
  }
}

bool NumPy::add(Tensors &all, PyObject *x, Place place) const {
  if (!owns(x))
    return false;
  Ref capsule(PyObject_GetAttr(x, arrayStruct));
  auto *array = capsule
                    ? static_cast<ArrayInterface *>(PyCapsule_GetPointer(capsule.get(), nullptr))
                    : nullptr;
  if (!array) {
    PyErr_Clear();
    return false;
  }
  int flags = kAligned | kNotSwapped | (place.isWritten ? kWritable : 0);
  if (array->version != kVersion || array->rank != place.type.rank ||
      (array->flags & flags) != flags || !hasType(x, array->kind, array->itemSize, place.type))
    return false;
  int64_t shape[kMostDims], strides[kMostDims];
  for (int i = 0; i < array->rank; ++i) {
    if (array->strides[i] % array->itemSize != 0)
      return false;
    shape[i] = array->shape[i];
    strides[i] = array->strides[i] / array->itemSize;
  }
  // Kernels read bools as bytes.
  int code = place.type.code == ATTN_DL_BOOL ? ATTN_DL_INT : place.type.code;
  all.next() = {array->data,
                {ATTN_DL_CPU, 0},
                array->rank,
                {static_cast<uint8_t>(code), static_cast<uint8_t>(place.type.bits), 1},
                shape,
                strides,
                /*byte_offset=*/0};
  all.take(place.isSwapped);
  return true;
}

PyObject *NumPy::makeEmpty(const int64_t *shape, int rank, bool isLse) const {
  Ref extents(makeTuple(shape, rank));
  if (!extents)
    return nullptr;
  return PyObject_CallFunctionObjArgs(empty, extents.get(), isLse ? lseDtype : dtype, nullptr);
}
