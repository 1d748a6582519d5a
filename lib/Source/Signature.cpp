//===- Signature.cpp - the host's view of a function ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Source/Signature.h"
#include "lib/Support/ElementType.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace attn {

static Expected<ValueType> getValueType(mlir::Type type, const Twine &what) {
  ValueType result;
  auto tensor = dyn_cast<mlir::RankedTensorType>(type);
  std::optional<ElementKind> kind = getElementKind(tensor ? tensor.getElementType() : type);
  if (!kind) {
    std::string text;
    raw_string_ostream(text) << type;
    return createStringError("expected " + what +
                             " to be a ranked tensor or scalar of f16, bf16, f32, f64, f8E4M3FN, "
                             "f8E5M2, i1, i8, i32, i64 or index, got " +
                             text);
  }
  result.kind = *kind;
  result.isScalar = !tensor;
  if (tensor)
    for (int64_t extent : tensor.getShape())
      result.shape.push_back(mlir::ShapedType::isDynamic(extent) ? -1 : extent);
  return result;
}

Expected<KernelSignature> getSignature(mlir::func::FuncOp function) {
  KernelSignature signature;
  signature.name = function.getName().str();
  for (auto [index, type] : enumerate(function.getArgumentTypes())) {
    Expected<ValueType> value =
        getValueType(type, "argument " + Twine(index) + " of @" + function.getName());
    if (!value)
      return value.takeError();
    signature.arguments.push_back(std::move(*value));
  }
  for (auto [index, type] : enumerate(function.getResultTypes())) {
    Expected<ValueType> value =
        getValueType(type, "result " + Twine(index) + " of @" + function.getName());
    if (!value)
      return value.takeError();
    if (value->isScalar)
      return createStringError("expected result " + Twine(index) + " of @" + function.getName() +
                               " to be a tensor, got a scalar");
    signature.results.push_back(std::move(*value));
  }
  return signature;
}

KernelSignature KernelSignature::withFloatsAs(ElementKind kind) const {
  KernelSignature result = *this;
  for (auto *values : {&result.arguments, &result.results})
    for (ValueType &value : *values)
      if (isFloat(value.kind))
        value.kind = kind;
  return result;
}

Expected<mlir::func::FuncOp> findEntry(mlir::ModuleOp module, StringRef entry) {
  SmallVector<mlir::func::FuncOp> candidates;
  std::string names;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    if (function.isExternal() || (entry.empty() && function.isPrivate()))
      continue;
    names += (names.empty() ? "@" : ", @") + function.getName().str();
    if (entry.empty() || function.getName() == entry)
      candidates.push_back(function);
  }
  if (candidates.size() == 1)
    return candidates.front();
  if (names.empty())
    names = "none";
  if (entry.empty())
    return createStringError("expected one public function or --entry=NAME, got " + names);
  return createStringError("expected a function @" + entry + " with a body, got " + names);
}

} // namespace attn
