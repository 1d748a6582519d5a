//===- Array.h - host arrays that own their memory --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_ARRAY_H
#define ATTN_LIB_SUPPORT_ARRAY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

namespace attn {

/// The element types a kernel can take from the host. An I1 occupies one byte holding 0 or 1.
enum class ElementKind : uint8_t { F16, BF16, F32, F64, F8E4M3FN, F8E5M2, I1, I8, I32, I64 };

llvm::StringRef getName(ElementKind kind);
int64_t getByteSize(ElementKind kind);
bool isFloat(ElementKind kind);

/// Conversions of single elements; narrowing rounds to nearest, ties to even. From a double
/// directly: going through a float would round twice.
float halfToFloat(uint16_t bits);
float bfloatToFloat(uint16_t bits);
float e4m3ToFloat(uint8_t bits);
float e5m2ToFloat(uint8_t bits);
uint16_t doubleToHalf(double value);
uint16_t doubleToBFloat(double value);
/// Beyond the largest number, 448, is NaN: f8E4M3FN has no infinity.
uint8_t doubleToE4M3(double value);
uint8_t doubleToE5M2(double value);

/// "2x8x?x64": -1 (or any negative extent) is printed as a question mark.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// The product of the extents, or an error when it does not fit 64 bits or an extent is negative.
llvm::Expected<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

/// The same in bytes.
llvm::Expected<int64_t> countBytes(ElementKind kind, llvm::ArrayRef<int64_t> shape);

/// An n-dimensional array on the host. Movable, not copyable: copies are large and should be seen.
class Array {
public:
  Array() = default;

  /// Allocates zeroed memory, aligned to 64 bytes. `order` lists the dimensions from the outermost
  /// in memory to the innermost; empty means row-major.
  static llvm::Expected<Array> allocate(ElementKind kind, llvm::ArrayRef<int64_t> shape,
                                        llvm::ArrayRef<unsigned> order = {});

  /// A copy with elements of another kind and the same layout in memory.
  llvm::Expected<Array> convert(ElementKind to) const;

  ElementKind getKind() const { return kind; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  /// In elements, not bytes.
  llvm::ArrayRef<int64_t> getStrides() const { return strides; }
  unsigned getRank() const { return shape.size(); }
  int64_t size() const { return numElements; }
  int64_t getByteCount() const { return numElements * getByteSize(kind); }
  void *data() { return storage.get(); }
  const void *data() const { return storage.get(); }
  template <typename T> T *dataAs() { return static_cast<T *>(data()); }
  template <typename T> const T *dataAs() const { return static_cast<const T *>(data()); }

  /// Visits `count` elements from the row-major position `first` on, in maximal runs of one
  /// constant stride: fn(address, stride in elements, length, position relative to `first`).
  using RunFn = llvm::function_ref<void(char *, int64_t, int64_t, int64_t)>;
  void forEachRun(int64_t first, int64_t count, RunFn fn) const;

  /// Elements in row-major order, whatever the layout in memory.
  void read(int64_t first, llvm::MutableArrayRef<double> to) const;
  void write(int64_t first, llvm::ArrayRef<double> from);
  double get(int64_t position) const;
  void set(int64_t position, double value) { write(position, value); }
  void fill(double value);

  /// Fills with a NaN that no arithmetic produces, so that an element never written can be told
  /// from one computed as NaN. Integers get a bit pattern that only makes a mistake conspicuous.
  void poison();
  /// The elements that still hold the poison. 0 for integers.
  int64_t countPoisoned() const;

private:
  struct Free {
    void operator()(char *pointer) const { std::free(pointer); }
  };

  ElementKind kind = ElementKind::F32;
  int64_t numElements = 0;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::SmallVector<int64_t, 4> strides;
  std::unique_ptr<char, Free> storage;
};

} // namespace attn

#endif // ATTN_LIB_SUPPORT_ARRAY_H
