//===- BuildId.cpp - which build of the compiler this is --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A version number stays while its compiler changes, and a kernel of yesterday's compiler must not
// be today's. So the linker's hash of the library (or program) that holds this code is part of the
// cache's key; where the linker left none, its size and time are.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Function.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

using namespace llvm;

namespace attn {

namespace {
struct IdSearch {
  uintptr_t address;
  std::string id;
};
} // namespace

/// The build id among the notes of [bytes, bytes + size).
static std::string findIdInNotes(const char *bytes, size_t size) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, bytes + at, sizeof(note));
    size_t name = at + sizeof(note), contents = name + alignTo(note.n_namesz, 4);
    if (contents + note.n_descsz > size)
      break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        !std::memcmp(bytes + name, "GNU", 4))
      return toHex(StringRef(bytes + contents, note.n_descsz), /*LowerCase=*/true);
    at = contents + alignTo(note.n_descsz, 4);
  }
  return "";
}

/// Stops at the object that holds the address.
static int visitObject(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<IdSearch *>(data);
  ArrayRef headers(info->dlpi_phdr, info->dlpi_phnum);
  bool isHere = any_of(headers, [&](const ElfW(Phdr) & header) {
    uintptr_t start = info->dlpi_addr + header.p_vaddr;
    return header.p_type == PT_LOAD && search.address >= start &&
           search.address < start + header.p_memsz;
  });
  if (!isHere)
    return 0;
  for (const ElfW(Phdr) &header : headers) {
    if (header.p_type != PT_NOTE || !search.id.empty())
      continue;
    // The loader tells addresses as numbers.
    uintptr_t notes = info->dlpi_addr + header.p_vaddr;
    search.id =
        findIdInNotes(reinterpret_cast<const char *>(notes), // NOLINT(performance-no-int-to-ptr)
                      header.p_memsz);
  }
  return 1;
}

static std::string findBuildId() {
  const void *here = reinterpret_cast<const void *>(&findBuildId);
  IdSearch search{reinterpret_cast<uintptr_t>(here), ""};
  dl_iterate_phdr(&visitObject, &search);
  if (!search.id.empty())
    return search.id;
  Dl_info object;
  struct stat status;
  if (!dladdr(here, &object) || ::stat(object.dli_fname, &status))
    return "unknown";
  return utohexstr(status.st_size) + "-" + utohexstr(status.st_mtim.tv_sec) + "-" +
         utohexstr(status.st_mtim.tv_nsec);
}

std::string getLibraryPath() {
  Dl_info object;
  const void *here = reinterpret_cast<const void *>(&findBuildId);
  return dladdr(here, &object) ? object.dli_fname : "";
}

const std::string &getBuildId() {
  static const std::string &id = *new std::string(findBuildId());
  return id;
}

} // namespace attn
