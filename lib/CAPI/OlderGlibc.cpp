//===- OlderGlibc.cpp - what LLVM and libgcc ask of glibc 2.35 and 2.36 -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Two functions that the archives in a wheel call; defined here, where attn.map hides them, the
// library runs with glibc 2.34: manylinux_2_34.
//
//===----------------------------------------------------------------------------------------===//

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

/// Names of temporary files.
extern "C" uint32_t arc4random() noexcept {
  uint32_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number))
    abort();
  return number;
}

namespace {
struct Search {
  uintptr_t address;
  dl_find_object *result;
};
} // namespace

/// Fills in the object whose code has the address; a program's objects are asked one after another.
static int visit(dl_phdr_info *info, size_t, void *data) {
  auto &search = *static_cast<Search *>(data);
  const ElfW(Phdr) *code = nullptr, *frames = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD &&
        search.address - (info->dlpi_addr + header.p_vaddr) < header.p_memsz)
      code = &header;
    else if (header.p_type == PT_GNU_EH_FRAME)
      frames = &header;
  }
  if (!code || !frames)
    return 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address.
  auto at = [&](uintptr_t offset) { return reinterpret_cast<void *>(info->dlpi_addr + offset); };
  *search.result = {};
  search.result->dlfo_map_start = at(code->p_vaddr);
  search.result->dlfo_map_end = at(code->p_vaddr + code->p_memsz);
  search.result->dlfo_eh_frame = at(frames->p_vaddr);
  return 1;
}

/// The frames of an address, for the unwinder.
extern "C" int _dl_find_object(void *address, dl_find_object *result) noexcept {
  Search search = {reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}
