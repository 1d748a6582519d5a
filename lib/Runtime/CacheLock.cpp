//===- CacheLock.cpp - one process at a time for a key ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/CacheLock.h"
#include "llvm/Support/Endian.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attn {

/// Of one byte. fcntl wants the rest to be zero.
static struct flock makeRange(short type, int64_t place) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = place;
  range.l_len = 1;
  return range;
}

CacheLock::CacheLock(int directory, const CacheKey &key)
    : file(::openat(directory, "locks", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                    S_IRUSR | S_IWUSR)),
      // A place is a number of 63 bits. Should two keys share theirs, they wait for each other.
      place(llvm::support::endian::read64le(key.bytes.data()) >> 1) {
  // The mask of the process may have taken more away, and the next one could not open it.
  if (file >= 0)
    (void)::fchmod(file, S_IRUSR | S_IWUSR);
}

CacheLock::~CacheLock() {
  if (file < 0)
    return;
  // Closing is not enough: a child that was forked meanwhile has the same description.
  struct flock range = makeRange(F_UNLCK, place);
  (void)::fcntl(file, F_OFD_SETLK, &range);
  ::close(file);
}

CacheLock::State CacheLock::tryLock() {
  if (file < 0)
    return State::Unsupported;
  struct flock range = makeRange(F_WRLCK, place);
  int result;
  do
    result = ::fcntl(file, F_OFD_SETLK, &range);
  while (result && errno == EINTR);
  if (!result)
    return State::Held;
  return errno == EAGAIN || errno == EACCES ? State::Busy : State::Unsupported;
}

} // namespace attn
