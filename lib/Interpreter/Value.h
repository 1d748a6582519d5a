//===- Value.h - the values that the interpreter computes with --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_VALUE_H
#define ATTN_LIB_INTERPRETER_VALUE_H

#include "lib/Support/Array.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include <memory>
#include <variant>
#include <vector>

namespace attn {

/// One element. Floats of every type are doubles, and no conversion between them rounds. Integers
/// are sign-extended to 64 bits, i1 included: true is -1.
union Lane {
  int64_t i;
  double f;
};

/// A tensor: row-major and dense. Slices are copies; nothing is written after it was made, except
/// the results of an scf.forall while it runs.
class DenseTensor {
public:
  /// Floats start as NaN, to make a read of an element that nobody wrote conspicuous; integers
  /// start as 0. A tensor without data has a shape only, which is enough of queries, keys and
  /// values to count tiles.
  static llvm::Expected<std::shared_ptr<DenseTensor>> create(llvm::ArrayRef<int64_t> shape,
                                                             bool isFloat, bool hasData = true);
  static llvm::Expected<std::shared_ptr<DenseTensor>> fromArray(const Array &array);

  /// An array of the given kind: floats are rounded to it here and nowhere else.
  llvm::Expected<Array> toArray(ElementKind kind) const;

  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  bool isFloat() const { return isFloating; }
  bool hasData() const { return isFilled; }
  int64_t size() const { return numElements; }
  /// Null without data.
  Lane *data() { return isFilled ? elements.data() : nullptr; }
  const Lane *data() const { return isFilled ? elements.data() : nullptr; }

private:
  llvm::SmallVector<int64_t, 4> shape;
  int64_t numElements = 0;
  bool isFloating = true, isFilled = true;
  std::vector<Lane> elements;
};

using TensorRef = std::shared_ptr<DenseTensor>;

/// The value of one SSA value. A value that was computed from a tensor without data is unknown.
class RuntimeValue {
public:
  RuntimeValue() = default;
  RuntimeValue(Lane scalar) : storage(scalar) {}
  RuntimeValue(TensorRef tensor) : storage(std::move(tensor)) {}
  static RuntimeValue integer(int64_t value) { return Lane{.i = value}; }
  static RuntimeValue real(double value) { return Lane{.f = value}; }

  bool isScalar() const { return std::holds_alternative<Lane>(storage); }
  bool isTensor() const { return std::holds_alternative<TensorRef>(storage); }
  bool isUnknown() const { return std::holds_alternative<std::monostate>(storage); }
  Lane getScalar() const { return std::get<Lane>(storage); }
  const TensorRef &getTensor() const { return std::get<TensorRef>(storage); }

private:
  std::variant<std::monostate, Lane, TensorRef> storage;
};

/// True for types whose elements are `Lane::f`.
inline bool isFloatElement(mlir::Type type) {
  return llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
}

/// The elements [offset + i * stride] of a box in a row-major tensor.
struct Slice {
  llvm::SmallVector<int64_t, 4> offsets, sizes, strides;

  /// An error when an element lies outside a tensor of this shape.
  llvm::Error check(llvm::ArrayRef<int64_t> shape) const;
  int64_t size() const;
  /// Visits runs along the last dimension in row-major order: fn(first, step, length), the first
  /// being an element's position in the tensor.
  void forEachRun(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(int64_t, int64_t, int64_t)> fn) const;
};

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_VALUE_H
