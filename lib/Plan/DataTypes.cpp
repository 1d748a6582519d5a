//===- DataTypes.cpp - names and sizes of element types ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Plan/DataTypes.h"

namespace attn {

const char *getName(DataType type) {
  switch (type) {
  case DataType::F16:
    return "f16";
  case DataType::BF16:
    return "bf16";
  case DataType::F32:
    return "f32";
  case DataType::F64:
    return "f64";
  case DataType::F8E4M3FN:
    return "f8E4M3FN";
  case DataType::F8E5M2:
    return "f8E5M2";
  case DataType::I1:
    return "i1";
  case DataType::I8:
    return "i8";
  case DataType::I32:
    return "i32";
  case DataType::I64:
    return "i64";
  }
  return "unknown";
}

int64_t getByteSize(DataType type) {
  switch (type) {
  case DataType::F8E4M3FN:
  case DataType::F8E5M2:
  case DataType::I1:
  case DataType::I8:
    return 1;
  case DataType::F16:
  case DataType::BF16:
    return 2;
  case DataType::F32:
  case DataType::I32:
    return 4;
  case DataType::F64:
  case DataType::I64:
    return 8;
  }
  return 1;
}

} // namespace attn
