//===- Call.cpp - what calls of one kernel have in common -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A Call takes the calls that most calls are: plain arrays that nobody watches, where they should
// be, of the types that the kernel was compiled for. Of all others it says None: python/attn takes
// any call, and says what is wrong with it. So there are hardly any messages here.
//
//===----------------------------------------------------------------------------------------===//

#include "Call.h"
#include "NumPy.h"
#include "Torch.h"
#include <cmath>

using namespace direct;

namespace {
constexpr int kMostCaptures = 16, kNumNamed = 4;
constexpr TensorType kSinkType = {ATTN_DL_FLOAT, 32, 1}, kLseType = {ATTN_DL_FLOAT, 32, 3};

struct Capture {
  TensorType type;
  /// In what a call gives.
  int position;
  int64_t least[kMostDims];
};

struct Call {
  PyObject_HEAD const attn_kernel *kernel;
  /// Keeps the kernel.
  PyObject *owner;
  /// PyTorch's, for the CPU; None elsewhere.
  PyObject *countThreads;
  /// Of q, k, v and the output.
  TensorType type;
  long long valueDim;
  /// `numRows` of the results are numbers of rows: lse, and what it lost to rounding.
  int isOnCPU, hasScale, hasSink, numRows, numCaptures;
  Capture captures[kMostCaptures];
  /// Of a kernel of gradients: whether it takes that of lse, and what lse lost to rounding; what
  /// its results are of: q, k, v and sink by 0 to 3, captured tensors by 4 and more.
  int hasLseGradient, hasLseLow, numWanted;
  int wanted[kNumNamed + kMostCaptures];
  Torch torch;
  NumPy numpy;
};

/// One call.
struct Given {
  PyObject *q, *k, *v, *scale, *sink, *captured;
  bool isRowsFirst, isOperator;
};
} // namespace

//===----------------------------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------------------------===//

/// "The caller has to take it", or the exception that there is.
static PyObject *giveUp() {
  if (PyErr_Occurred())
    return nullptr;
  Py_RETURN_NONE;
}

static bool addScale(Tensors &all, PyObject *scale) {
  if (!PyFloat_CheckExact(scale))
    return false;
  double number = PyFloat_AsDouble(scale);
  auto rounded = static_cast<float>(number);
  if (std::isinf(rounded) && !std::isinf(number))
    return false;
  all.takeScale(rounded);
  return true;
}

template <typename Library>
static bool addCapture(const Library &library, Tensors &all, PyObject *captured,
                       const Capture &capture) {
  PyObject *x = PyList_GetItem(captured, capture.position);
  if (!x) {
    PyErr_Clear();
    return false;
  }
  if (!library.add(all, x, {capture.type}))
    return false;
  const int64_t *shape = all.lastShape();
  return std::equal(shape, shape + capture.type.rank, capture.least,
                    [](int64_t extent, int64_t least) { return extent >= least; });
}

/// Whether all that the call gives is what the kernel takes.
template <typename Library>
static bool addArguments(const Call &call, const Library &library, Tensors &all,
                         const Given &given) {
  for (PyObject *x : {given.q, given.k, given.v})
    if (!library.add(all, x, {call.type, given.isRowsFirst}))
      return false;
  if ((given.scale != Py_None) != bool(call.hasScale) ||
      (given.sink != Py_None) != bool(call.hasSink))
    return false;
  if (call.hasScale && !addScale(all, given.scale))
    return false;
  if (call.hasSink && !library.add(all, given.sink, {kSinkType}))
    return false;
  for (int i = 0; i < call.numCaptures; ++i)
    if (!addCapture(library, all, given.captured, call.captures[i]))
      return false;
  return true;
}

/// By as many threads as PyTorch uses.
static bool setThreads(PyObject *countThreads) {
  if (countThreads == Py_None)
    return true;
  Ref threads(PyObject_CallNoArgs(countThreads));
  long count = threads ? PyLong_AsLong(threads.get()) : -1;
  if (count < 0) {
    PyErr_Clear();
    return false;
  }
  if (count != attn_get_num_threads())
    attn_set_num_threads(static_cast<int32_t>(count));
  return true;
}

/// Whether the kernel ran, or was queued.
template <typename Library>
static bool launch(const Call &call, const Library &library, const Tensors &all) {
  void *stream = nullptr;
  if (call.isOnCPU ? !setThreads(call.countThreads) : !library.findStream(&stream))
    return false;
  return all.run(call.kernel, stream) == ATTN_OK;
}

/// A new array, added as a result. Null where it is none that the kernel takes, or with an
/// exception.
template <typename Library>
static PyObject *addResult(const Library &library, Tensors &all, const int64_t *shape, Place place,
                           bool isLse) {
  Ref result(library.makeEmpty(shape, place.type.rank, isLse));
  return result && library.add(all, result.get(), place) ? result.take() : nullptr;
}

/// The call with results that it makes: they.
template <typename Library>
static PyObject *runAnew(const Call &call, const Library &library, Tensors &all, bool isRowsFirst) {
  const int64_t *query = all.firstShape();
  int64_t b = query[0], h = query[1], m = query[2];
  int64_t shape[] = {b, isRowsFirst ? m : h, isRowsFirst ? h : m, call.valueDim};
  Ref output(addResult(library, all, shape, {call.type, isRowsFirst, /*isWritten=*/true},
                       /*isLse=*/false));
  if (!output)
    return giveUp();
  if (call.numRows == 0)
    return launch(call, library, all) ? output.take() : giveUp();
  Ref results(PyTuple_New(1 + call.numRows));
  if (!results || PyTuple_SetItem(results.get(), 0, output.take()) < 0)
    return giveUp();
  int64_t rows[] = {b, h, m};
  for (int i = 1; i <= call.numRows; ++i) {
    PyObject *ofRows =
        addResult(library, all, rows, {kLseType, /*isSwapped=*/false, /*isWritten=*/true},
                  /*isLse=*/true);
    if (!ofRows || PyTuple_SetItem(results.get(), i, ofRows) < 0)
      return giveUp();
  }
  return launch(call, library, all) ? results.take() : giveUp();
}

/// The call with results that the caller gives: they.
template <typename Library>
static PyObject *runInto(const Call &call, const Library &library, Tensors &all, bool isRowsFirst,
                         PyObject *results) {
  PyObject *output = results, *lse = nullptr;
  if (call.numRows > 1)
    return giveUp();
  if (call.numRows == 1) {
    if (!PyTuple_CheckExact(results) || PyTuple_Size(results) != 2)
      return giveUp();
    output = PyTuple_GetItem(results, 0);
    lse = PyTuple_GetItem(results, 1);
  }
  if (!library.add(all, output, {call.type, isRowsFirst, /*isWritten=*/true}) ||
      (lse && !library.add(all, lse, {kLseType, /*isSwapped=*/false, /*isWritten=*/true})) ||
      all.isRecorded || !launch(call, library, all))
    return giveUp();
  Py_INCREF(results);
  return results;
}

template <typename Library>
static PyObject *run(const Call &call, const Library &library, const Given &given, PyObject *out) {
  Tensors all;
  if (!addArguments(call, library, all, given) || library.isWatched(all, given.isOperator))
    return giveUp();
  return out == Py_None ? runAnew(call, library, all, given.isRowsFirst)
                        : runInto(call, library, all, given.isRowsFirst, out);
}

/// A new gradient of one of the arguments, added as a result; null as `addResult`.
template <typename Library>
static PyObject *addGradient(const Call &call, const Library &library, Tensors &all, int of,
                             bool isRowsFirst) {
  constexpr int numMatrices = 3, sink = 3;
  bool isMatrix = of < numMatrices, isSwapped = isMatrix && isRowsFirst;
  // The scale stands in front of the sink, and one that is not there takes no place.
  int argument = isMatrix ? of : of + call.hasScale - (of > sink && !call.hasSink);
  const TensorType &type = isMatrix     ? call.type
                           : of == sink ? kSinkType
                                        : call.captures[of - kNumNamed].type;
  Place place = {type, isSwapped, /*isWritten=*/true};
  if (!isMatrix)
    place.type = {ATTN_DL_FLOAT, 32, type.rank};
  int64_t shape[kMostDims];
  std::copy_n(all.shapeOf(argument), type.rank, shape);
  if (isSwapped)
    std::swap(shape[1], shape[2]);
  return addResult(library, all, shape, place, /*isLse=*/!isMatrix);
}

/// What gradients read besides the arguments of the call.
struct Results {
  PyObject *output, *lse, *lseLow, *outputGradient, *lseGradient;
};

template <typename Library>
static PyObject *runGradient(const Call &call, const Library &library, const Given &given,
                             const Results &results) {
  Tensors all;
  Place matrix = {call.type, given.isRowsFirst};
  if ((results.lseGradient != Py_None) != bool(call.hasLseGradient) ||
      (results.lseLow != Py_None) != bool(call.hasLseLow) ||
      !addArguments(call, library, all, given) || !library.add(all, results.output, matrix) ||
      !library.add(all, results.lse, {kLseType}) ||
      (call.hasLseLow && !library.add(all, results.lseLow, {kLseType})) ||
      !library.add(all, results.outputGradient, matrix) ||
      (call.hasLseGradient && !library.add(all, results.lseGradient, {kLseType})) ||
      library.isWatched(all, given.isOperator))
    return giveUp();
  Ref gradients(PyTuple_New(call.numWanted));
  for (int i = 0; gradients && i < call.numWanted; ++i) {
    PyObject *gradient = addGradient(call, library, all, call.wanted[i], given.isRowsFirst);
    if (!gradient || PyTuple_SetItem(gradients.get(), i, gradient) != 0)
      return giveUp();
  }
  return gradients && launch(call, library, all) ? gradients.take() : giveUp();
}

PyDoc_STRVAR(runDoc,
             "run(q, k, v, scale, sink, captured, rows_first, is_operator, out)\n\n"
             "The output, or (output, lse[, lse_low]), which is `out` where that is not None; None "
             "for a call that is not taken here, or that failed.");

static PyObject *runAny(PyObject *self, PyObject *const *x, Py_ssize_t count) {
  if (count != 9) {
    PyErr_Format(PyExc_TypeError, "run: expected 9 arguments, got %zd", count);
    return nullptr;
  }
  const Call &call = *reinterpret_cast<Call *>(self);
  Given given = {x[0], x[1], x[2], x[3], x[4], x[5], x[6] == Py_True, x[7] == Py_True};
  if (call.torch.owns(given.q))
    return run(call, call.torch, given, x[8]);
  if (call.numpy.owns(given.q))
    return run(call, call.numpy, given, x[8]);
  Py_RETURN_NONE;
}

PyDoc_STRVAR(runGradientDoc,
             "run_gradient(q, k, v, scale, sink, captured, rows_first, output, lse, lse_low, "
             "d_output, d_lse)\n\n"
             "The gradients that are wanted; None for a call that is not taken here, or that "
             "failed.");

static PyObject *runAnyGradient(PyObject *self, PyObject *const *x, Py_ssize_t count) {
  if (count != 12) {
    PyErr_Format(PyExc_TypeError, "run_gradient: expected 12 arguments, got %zd", count);
    return nullptr;
  }
  const Call &call = *reinterpret_cast<Call *>(self);
  Given given = {x[0], x[1], x[2], x[3], x[4], x[5], x[6] == Py_True, /*isOperator=*/false};
  Results results = {x[7], x[8], x[9], x[10], x[11]};
  if (call.torch.owns(given.q))
    return runGradient(call, call.torch, given, results);
  if (call.numpy.owns(given.q))
    return runGradient(call, call.numpy, given, results);
  Py_RETURN_NONE;
}

//===----------------------------------------------------------------------------------------===//
// The class
//===----------------------------------------------------------------------------------------===//

/// (code, bits, rank, position, least extents) of each, as far as there is room.
static bool parseCaptures(Call &call, PyObject *captures) {
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

/// Those of a kernel of gradients; none for another.
static bool parseWanted(Call &call, PyObject *wanted) {
  Py_ssize_t count = PyTuple_Size(wanted), most = kNumNamed + call.numCaptures;
  for (Py_ssize_t i = 0; i < count && i < most; ++i) {
    long of = PyLong_AsLong(PyTuple_GetItem(wanted, i));
    if (PyErr_Occurred())
      return false;
    if (of < 0 || of >= most)
      break;
    call.wanted[call.numWanted++] = static_cast<int>(of);
  }
  if (call.numWanted == count)
    return true;
  PyErr_Format(PyExc_ValueError, "wanted: expected numbers of at most %zd arguments", most);
  return false;
}

static void dealloc(PyObject *self) {
  auto &call = *reinterpret_cast<Call *>(self);
  call.torch.release();
  call.numpy.release();
  Py_XDECREF(call.owner);
  Py_XDECREF(call.countThreads);
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyObject *create(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static const char *names[] = {
      "owner",     "kernel",    "count_threads", "on_cpu",     "code",     "bits",
      "value_dim", "has_scale", "has_sink",      "count_rows", "captures", "torch",
      "numpy",     "wanted",    "lse_gradient",  "lse_low",    nullptr};
  PyObject *owner, *kernel, *countThreads, *captures, *torch, *numpy, *wanted = nullptr;
  // Of zeros.
  Ref self(reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0));
  if (!self)
    return nullptr;
  auto &call = *reinterpret_cast<Call *>(self.get());
  if (!PyArg_ParseTupleAndKeywords(
          arguments, keywords, "OO!OpiiLppiO!OO|O!pp:Call", const_cast<char **>(names), &owner,
          &PyLong_Type, &kernel, &countThreads, &call.isOnCPU, &call.type.code, &call.type.bits,
          &call.valueDim, &call.hasScale, &call.hasSink, &call.numRows, &PyTuple_Type, &captures,
          &torch, &numpy, &PyTuple_Type, &wanted, &call.hasLseGradient, &call.hasLseLow))
    return nullptr;
  Py_INCREF(owner);
  call.owner = owner;
  Py_INCREF(countThreads);
  call.countThreads = countThreads;
  call.kernel = static_cast<const attn_kernel *>(PyLong_AsVoidPtr(kernel));
  call.type.rank = 4;
  if (PyErr_Occurred() || !parseCaptures(call, captures) ||
      (wanted && !parseWanted(call, wanted)) || (torch != Py_None && !call.torch.parse(torch)) ||
      (numpy != Py_None && !call.numpy.parse(numpy)))
    return nullptr;
  return self.take();
}

static PyMethodDef methods[] = {
    {"run", erase(runAny), METH_FASTCALL, runDoc},
    {"run_gradient", erase(runAnyGradient), METH_FASTCALL, runGradientDoc},
    {nullptr, nullptr, 0, nullptr}};

static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(create)},
                              {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                              {Py_tp_methods, methods},
                              {0, nullptr}};

static PyType_Spec spec = {"_direct.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT, slots};

int direct::addCallClass(PyObject *module) {
  Ref type(PyType_FromSpec(&spec));
  return type ? PyModule_AddObjectRef(module, "Call", type.get()) : -1;
}
