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

Status Status::aboutArgument(size_t index, std::string before, std::string_view after,
                             std::string hint) {
  std::string number = "argument " + std::to_string(index);
  StatusArgument argument{index, before.size(), number.size()};
  Status status{StatusCode::InvalidArgument, std::move(before), std::move(hint), argument};
  status.message += number;
  status.message += after;
  return status;
}

void Status::nameArgument(std::string_view name) {
  if (!argument)
    return;
  message.replace(argument->begin, argument->length, name);
  message.insert(0, std::string(name) + ": ");
  argument->begin += name.size() + 2;
  argument->length = name.size();
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
