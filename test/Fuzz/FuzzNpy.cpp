//===- FuzzNpy.cpp - any bytes as a .npy file -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Npy.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace attn;

/// A file that this process alone sees.
static const std::string &getPath() {
  static const std::string path = "/dev/shm/fuzz-npy-" + std::to_string(getpid());
  static int registered = std::atexit([] { (void)unlink(path.c_str()); });
  (void)registered;
  return path;
}

static void readFile(llvm::StringRef bytes) {
  FILE *file = fopen(getPath().c_str(), "wb");
  if (!file)
    abort();
  fwrite(bytes.data(), 1, bytes.size(), file);
  fclose(file);
  auto array = readNpy(getPath());
  if (!array)
    return llvm::consumeError(array.takeError());
  // What was read can be written and read again.
  if (llvm::Error error = writeNpy(getPath(), *array))
    abort();
  auto again = readNpy(getPath());
  if (!again || again->getShape() != array->getShape() || again->getKind() != array->getKind())
    abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  if (bytes.empty())
    return 0;
  char mode = bytes.front();
  bytes = bytes.drop_front();
  if (mode & 1) {
    auto header = parseNpyDictionary(bytes);
    if (!header)
      llvm::consumeError(header.takeError());
    return 0;
  }
  if (mode & 2) {
    readFile(bytes);
    return 0;
  }
  // Behind a magic number and a length that are right, most of the bytes are read.
  auto [dictionary, contents] = bytes.split('\n');
  std::string header = dictionary.str() + "\n";
  std::string file = "\x93NUMPY";
  file += mode & 4 ? std::string("\x01\x00", 2) : std::string("\x02\x00", 2);
  for (int i = 0; i < (mode & 4 ? 2 : 4); ++i)
    file += char(header.size() >> (8 * i));
  readFile(file + header + contents.str());
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t largest);

/// Begins with a file that is right.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t largest, unsigned) {
  static const char kDictionary[] =
      "\x05{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n012345678901234567890123";
  if (size < 8 && largest >= sizeof(kDictionary)) {
    size = sizeof(kDictionary) - 1;
    memcpy(data, kDictionary, size);
    data[0] = rand() & 7;
  }
  return LLVMFuzzerMutate(data, size, largest);
}
