//===- DataTypes.h - element kinds as the runtime names them --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_DATATYPES_H
#define ATTN_LIB_PLAN_DATATYPES_H

#include "attn/Runtime.h"
#include "lib/Support/Array.h"
#include <optional>
#include <string_view>

namespace attn {

/// The runtime's name of what a host array holds; every kind has one.
inline DataType getDataType(ElementKind kind) {
  switch (kind) {
  case ElementKind::F16:
    return DataType::F16;
  case ElementKind::BF16:
    return DataType::BF16;
  case ElementKind::F32:
    return DataType::F32;
  case ElementKind::F64:
    return DataType::F64;
  case ElementKind::F8E4M3FN:
    return DataType::F8E4M3FN;
  case ElementKind::F8E5M2:
    return DataType::F8E5M2;
  case ElementKind::I1:
    return DataType::I1;
  case ElementKind::I8:
    return DataType::I8;
  case ElementKind::I32:
    return DataType::I32;
  case ElementKind::I64:
    return DataType::I64;
  }
  return DataType::I64;
}

/// The type of that name, the inverse of getName.
inline std::optional<DataType> findDataType(std::string_view name) {
  for (DataType type :
       {DataType::F16, DataType::BF16, DataType::F32, DataType::F64, DataType::F8E4M3FN,
        DataType::F8E5M2, DataType::I1, DataType::I8, DataType::I32, DataType::I64})
    if (name == getName(type))
      return type;
  return std::nullopt;
}

} // namespace attn

#endif // ATTN_LIB_PLAN_DATATYPES_H
