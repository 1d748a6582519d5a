//===- Stack.cpp - where a child died ---------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Stack.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdio>
#include <dlfcn.h>
#include <map>

using namespace llvm;

namespace attn::fuzz {

static std::string findSymbolizer() {
  for (StringRef name : {"llvm-symbolizer-22", "llvm-symbolizer"})
    if (ErrorOr<std::string> path = sys::findProgramByName(name, {"/usr/lib/llvm-22/bin"}))
      return *path;
  if (ErrorOr<std::string> path = sys::findProgramByName("llvm-symbolizer"))
    return *path;
  return std::string();
}

/// Asks for addresses of one file at once: reading its symbols is what takes long.
static void ask(StringRef symbolizer, StringRef object, ArrayRef<uintptr_t> offsets,
                ArrayRef<Frame *> frames) {
  std::string command = (symbolizer + " --no-inlines --relativenames --obj='" + object + "'").str();
  for (uintptr_t offset : offsets)
    command += " 0x" + utohexstr(offset);
  FILE *pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe)
    return;
  std::string text;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    text.append(buffer, got);
  pclose(pipe);
  // A function, a place and an empty line for each.
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  for (size_t i = 0; i < frames.size() && 3 * i + 1 < lines.size(); ++i) {
    if (lines[3 * i] != "??")
      frames[i]->function = lines[3 * i].str();
    frames[i]->place = sys::path::filename(lines[3 * i + 1]).str();
  }
}

static bool isRuntime(StringRef function) {
  for (StringRef prefix : {"__asan",        "__sanitizer",  "__ubsan",
                           "__interceptor", "raise",        "abort",
                           "__assert",      "gsignal",      "pthread_kill",
                           "__pthread",     "__GI_",        "gsignal",
                           "__restore_rt",  "__libc",       "attn::fuzz::onFatalSignal",
                           "onFatalSignal", "operator new", "operator delete",
                           "free",          "malloc",       "syscall"})
    if (function.starts_with(prefix))
      return true;
  return function.starts_with("libc.so") || function.contains("onFatalSignal") ||
         function.contains("__sanitizer::") || function.contains("__asan::") ||
         function.contains("__ubsan::");
}

std::vector<Frame> symbolize(ArrayRef<void *> addresses) {
  static const std::string symbolizer = findSymbolizer();
  Dl_info self;
  dladdr(reinterpret_cast<void *>(&symbolize), &self);
  std::vector<Frame> frames(addresses.size());
  std::map<std::string, std::pair<SmallVector<uintptr_t>, SmallVector<Frame *>>> byObject;
  for (auto [address, frame] : zip_equal(addresses, frames)) {
    Dl_info info;
    if (!dladdr(address, &info))
      continue;
    frame.isOurs = info.dli_fbase == self.dli_fbase;
    // The address is where a call returns to, which may be the next function already.
    uintptr_t offset =
        reinterpret_cast<uintptr_t>(address) - 1 - reinterpret_cast<uintptr_t>(info.dli_fbase);
    StringRef object = frame.isOurs ? "/proc/self/exe" : info.dli_fname;
    frame.function = (sys::path::filename(info.dli_fname) + "+0x" + utohexstr(offset)).str();
    SmallString<128> path(object);
    if (frame.isOurs) {
      path.clear();
      path = sys::fs::getMainExecutable(nullptr, reinterpret_cast<void *>(&symbolize));
    }
    auto &group = byObject[path.str().str()];
    group.first.push_back(offset);
    group.second.push_back(&frame);
  }
  if (!symbolizer.empty())
    for (auto &[object, group] : byObject)
      ask(symbolizer, object, group.first, group.second);
  // What is below the fuzzer's own frames is the same for all.
  auto end = find_if(frames, [](const Frame &frame) {
    return StringRef(frame.function).starts_with("attn::fuzz::") &&
           !StringRef(frame.function).contains("onFatalSignal");
  });
  frames.erase(end, frames.end());
  erase_if(frames, [](const Frame &frame) { return isRuntime(frame.function); });
  return frames;
}

} // namespace attn::fuzz
