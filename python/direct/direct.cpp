//===- direct.cpp - calls of kernels from Python --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The module `_direct`, on CPython's stable ABI: one build for CPython 3.10 and later. It needs the
// headers of no other library: PyTorch it knows by DLPack's table of functions
// (__dlpack_c_exchange_api__), NumPy by the struct of its array interface (__array_struct__).
//
//===----------------------------------------------------------------------------------------===//

#include "Call.h"

using namespace direct;

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
  int64_t extents[kMostDims], steps[kMostDims];
  for (int i = 0; i < rank; ++i) {
    extents[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    steps[i] = PyLong_AsLongLong(PyTuple_GetItem(strides, i));
  }
  if (PyErr_Occurred())
    return false;
  all.next() = {reinterpret_cast<void *>(address),
                {deviceType, deviceId},
                rank,
                {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1},
                extents,
                steps,
                /*byte_offset=*/0};
  all.take(/*isSwapped=*/false);
  return true;
}

PyDoc_STRVAR(launchDoc,
             "launch(kernel, tensors, stream)\n\n"
             "The code of attn_run; None where there are more tensors or dimensions than it has "
             "room for. Of each tensor (address, device_type, device_id, code, bits, shape, "
             "strides).");

static PyObject *launch(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 3) {
    PyErr_Format(PyExc_TypeError, "launch: expected 3 arguments, got %zd", count);
    return nullptr;
  }
  auto *kernel = static_cast<const attn_kernel *>(PyLong_AsVoidPtr(arguments[0]));
  if (PyErr_Occurred())
    return nullptr;
  void *stream = arguments[2] == Py_None ? nullptr : PyLong_AsVoidPtr(arguments[2]);
  if (PyErr_Occurred())
    return nullptr;
  Py_ssize_t size = PyList_Size(arguments[1]);
  if (size < 0)
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
  return PyLong_FromLong(all.run(kernel, stream));
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void *>(addCallClass)},
                                   {0, nullptr}};

static PyMethodDef functions[] = {{"launch", erase(launch), METH_FASTCALL, launchDoc},
                                  {nullptr, nullptr, 0, nullptr}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_direct", nullptr, 0, functions, slots, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__direct() { return PyModuleDef_Init(&module); }
