//===- Status.h - errors as values ------------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_STATUS_H
#define ATTN_STATUS_H

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace attn {

enum class StatusCode {
  Ok,
  /// An argument of the call: a wrong count, type, rank, stride, alignment or value.
  InvalidArgument,
  /// libcuda.so.1 is missing or unusable.
  NoDriver,
  /// There is a driver and no GPU, or not the one asked for.
  NoDevice,
  /// The GPU cannot run the kernel, whatever the driver.
  UnsupportedDevice,
  /// The GPU can, the driver cannot.
  DriverTooOld,
  /// PTX that does not assemble, or a plan that is not one or does not fit the PTX.
  InvalidKernel,
  /// More shared memory, threads or blocks than the GPU has.
  ResourceLimit,
  OutOfMemory,
  /// The call would synchronise, and the stream is being captured into a graph.
  CaptureInProgress,
  /// Any other error of the driver, such as one of an earlier kernel.
  DriverFailure
};

/// "invalid argument", "no driver"…
const char *getName(StatusCode code);

/// The argument of a call that a message is about, and where the message names it: "argument 1".
struct StatusArgument {
  size_t index = 0;
  size_t begin = 0, length = 0;
};

/// The result of a call: success, or an error. Nothing in attn throws.
struct [[nodiscard]] Status {
  StatusCode code = StatusCode::Ok;
  /// "expected X, got Y": lower case, no full stop. Empty when Ok.
  std::string message;
  /// The nearest change that would be accepted, as an imperative. Empty when none is known.
  std::string hint;
  /// Set where the message is about one argument of the call. With an initializer, so that others
  /// may leave it out.
  std::optional<StatusArgument> argument = {}; // NOLINT(readability-redundant-member-init)

  /// An InvalidArgument about an argument: `before`, its number and `after` make the message.
  static Status aboutArgument(size_t index, std::string before, std::string_view after,
                              std::string hint = "");
  /// For a caller who knows arguments by name: "expected argument 1 ..." becomes
  /// "key: expected key ...".
  void nameArgument(std::string_view name);

  bool ok() const { return code == StatusCode::Ok; }
  /// "invalid argument: expected X, got Y (hint)".
  std::string str() const;
};

/// A value, or the reason why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T result) : value(std::move(result)) {}
  /// `failure` is not Ok.
  Result(Status failure) : status(std::move(failure)) {}

  explicit operator bool() const { return value.has_value(); }
  /// Only when there is a value.
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

  const Status &getStatus() const { return status; }
  Status takeStatus() { return std::move(status); }

private:
  Status status;
  std::optional<T> value;
};

} // namespace attn

#endif // ATTN_STATUS_H
