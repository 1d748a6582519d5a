//===- AddressSpace.h - addresses, and memory that is put at them --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_ADDRESSSPACE_H
#define ATTN_LIB_RUNTIME_ADDRESSSPACE_H

#include "attn/Status.h"
#include <cstdint>
#include <memory>
#include <span>

namespace attn {

/// A range of addresses, and pieces of memory of one size that are put at some of them. A piece may
/// stand at several addresses. Not thread-safe.
class AddressSpace {
public:
  /// `device` by the driver's number; -1 is the host.
  static Result<std::unique_ptr<AddressSpace>> open(int device);

  virtual ~AddressSpace() = default;
  AddressSpace() = default;
  AddressSpace(const AddressSpace &) = delete;
  AddressSpace &operator=(const AddressSpace &) = delete;

  /// Bytes of a piece.
  virtual size_t getPieceBytes() const = 0;
  /// Once: so many bytes of addresses, a multiple of a piece.
  virtual Status reserve(size_t bytes) = 0;
  virtual char *getBase() const = 0;

  using Piece = uint64_t;
  virtual Result<Piece> make() = 0;
  /// Of a piece that stands nowhere.
  virtual Status destroy(Piece piece) = 0;

  /// Puts pieces at neighbouring addresses, `offset` bytes from the base, where nothing stands. All
  /// of them, or none.
  virtual Status map(size_t offset, std::span<const Piece> pieces) = 0;
  virtual Status unmap(size_t offset, size_t count) = 0;

  /// A point of a stream.
  using Mark = uint64_t;
  virtual Result<Mark> mark(void *stream) = 0;
  /// Whether the device is past it; waits for that if told to. The mark is gone where the answer is
  /// yes.
  virtual Result<bool> pass(Mark mark, bool waits) = 0;
};

/// The two kinds.
Result<std::unique_ptr<AddressSpace>> openHostAddresses();
Result<std::unique_ptr<AddressSpace>> openDeviceAddresses(int device);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_ADDRESSSPACE_H
