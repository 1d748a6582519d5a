//===- HostAddresses.cpp - an address space of this process --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/AddressSpace.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace attn {

Result<std::unique_ptr<AddressSpace>> AddressSpace::open(int device) {
  return device < 0 ? openHostAddresses() : openDeviceAddresses(device);
}

static Status fail(StatusCode code, const std::string &what) {
  return {code, "failed to " + what + ": " + std::strerror(errno), ""};
}

namespace {
/// Pieces are parts of a file in memory, since one of those can stand at several addresses.
class HostAddresses final : public AddressSpace {
public:
  explicit HostAddresses(int file) : file(file) {}
  ~HostAddresses() override {
    if (base)
      munmap(base, bytes);
    close(file);
  }

  size_t getPieceBytes() const override { return kPieceBytes; }
  char *getBase() const override { return base; }

  Status reserve(size_t wanted) override {
    void *found = mmap(nullptr, wanted, PROT_NONE, kReserved, -1, 0);
    if (found == MAP_FAILED)
      return fail(StatusCode::ResourceLimit,
                  "reserve " + std::to_string(wanted) + " bytes of addresses");
    base = static_cast<char *>(found);
    bytes = wanted;
    return {};
  }

  Result<Piece> make() override {
    Piece piece = unused.empty() ? end : unused.back();
    // Takes the memory now: a file that is merely longer would end the process where there is none.
    if (fallocate(file, 0, static_cast<off_t>(piece), kPieceBytes) != 0)
      return fail(StatusCode::OutOfMemory,
                  "allocate " + std::to_string(kPieceBytes) + " bytes of memory");
    if (unused.empty())
      end += kPieceBytes;
    else
      unused.pop_back();
    return piece;
  }

  Status destroy(Piece piece) override {
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (fallocate(file, mode, static_cast<off_t>(piece), kPieceBytes) != 0)
      return fail(StatusCode::OutOfMemory, "give memory back");
    unused.push_back(piece);
    return {};
  }

  Status map(size_t offset, std::span<const Piece> pieces) override {
    for (size_t i = 0; i < pieces.size(); ++i) {
      char *address = base + offset + i * kPieceBytes;
      void *found = mmap(address, kPieceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                         static_cast<off_t>(pieces[i]));
      if (found != MAP_FAILED)
        continue;
      Status status = fail(StatusCode::OutOfMemory, "map memory");
      (void)unmap(offset, i);
      return status;
    }
    return {};
  }

  Status unmap(size_t offset, size_t count) override {
    if (count && mmap(base + offset, count * kPieceBytes, PROT_NONE, kReserved | MAP_FIXED, -1,
                      0) == MAP_FAILED)
      return fail(StatusCode::OutOfMemory, "unmap memory");
    return {};
  }

  // Calls of the host have ended when they return.
  Result<Mark> mark(void *) override { return Mark(0); }
  Result<bool> pass(Mark, bool) override { return true; }

private:
  /// Of any page size that Linux has.
  static constexpr size_t kPieceBytes = 65536;
  static constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  int file;
  char *base = nullptr;
  /// Of the addresses, and of the file.
  size_t bytes = 0, end = 0;
  /// Parts of the file that have no memory.
  std::vector<Piece> unused;
};
} // namespace

Result<std::unique_ptr<AddressSpace>> openHostAddresses() {
  int file = memfd_create("attn-cache", MFD_CLOEXEC);
  if (file < 0)
    return fail(StatusCode::ResourceLimit, "open a file in memory");
  return std::unique_ptr<AddressSpace>(new HostAddresses(file));
}

} // namespace attn
