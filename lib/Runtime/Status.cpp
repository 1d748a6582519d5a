//===- Status.cpp - errors as values ----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Status.h"

namespace attn {

const char *getName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidArgument:
    return "invalid argument";
  case StatusCode::NoDriver:
    return "no driver";
  case StatusCode::NoDevice:
    return "no device";
  case StatusCode::UnsupportedDevice:
    return "unsupported device";
  case StatusCode::DriverTooOld:
    return "driver too old";
  case StatusCode::InvalidKernel:
    return "invalid kernel";
  case StatusCode::ResourceLimit:
    return "resource limit";
  case StatusCode::OutOfMemory:
    return "out of memory";
  case StatusCode::CaptureInProgress:
    return "capture in progress";
  case StatusCode::DriverFailure:
    return "driver failure";
  }
  return "unknown";
}

std::string Status::str() const {
  std::string text = getName(code);
  if (!message.empty())
    text += ": " + message;
  if (!hint.empty())
    text += " (" + hint + ")";
  return text;
}

} // namespace attn
