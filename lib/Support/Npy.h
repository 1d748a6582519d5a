//===- Npy.h - NumPy's array files ------------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_NPY_H
#define ATTN_LIB_SUPPORT_NPY_H

#include "lib/Support/Array.h"

namespace attn {

/// The header of a file. bfloat16 has no code of its own: ml_dtypes writes `V2` (two opaque bytes),
/// and other tools `<u2`, so `V2` is read as bf16 and `<u2` only where the caller expects bf16.
struct NpyHeader {
  ElementKind kind = ElementKind::F32;
  /// The code was `<u2`.
  bool isUnsigned16 = false;
  /// u1 or V1: bytes that are floats of 8 bits, if the reader says so.
  bool isBytes = false;
  bool isFortranOrder = false;
  llvm::SmallVector<int64_t, 4> shape;
};

/// Properties that a reader insists on. A negative extent accepts any.
struct NpyExpectation {
  std::optional<ElementKind> kind;
  std::optional<llvm::SmallVector<int64_t, 4>> shape;
};

/// Parses the dictionary of a header, `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),
/// }`.
llvm::Expected<NpyHeader> parseNpyDictionary(llvm::StringRef text);

/// Reads the header of a file only.
llvm::Expected<NpyHeader> readNpyHeader(llvm::StringRef path, const NpyExpectation &expected = {});

/// Reads a file of format version 1, 2 or 3. Files are not trusted: everything malformed is an
/// error that names the file. `order` is the layout in memory, as in Array::allocate.
llvm::Expected<Array> readNpy(llvm::StringRef path, const NpyExpectation &expected = {},
                              llvm::ArrayRef<unsigned> order = {});

/// Writes version 1, row-major, bf16 as `<V2`, floats of 8 bits as `|V1`.
llvm::Error writeNpy(llvm::StringRef path, const Array &array);

} // namespace attn

#endif // ATTN_LIB_SUPPORT_NPY_H
