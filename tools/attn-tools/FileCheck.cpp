//===- FileCheck.cpp - LLVM's FileCheck inside another program ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// LLVM's own driver of this library is a program and no library, and asks for shared libraries
// that a machine without LLVM may lack.
//
//===----------------------------------------------------------------------------------------===//

#include "tools/attn-tools/FileCheck.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/FileCheck/FileCheck.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {
struct CommandLine {
  StringRef checkFile, inputFile = "-";
  FileCheckRequest request;
};
} // namespace

/// `--name=value`, `--name value`, with one dash or two.
static bool parse(int argc, char **argv, CommandLine &to) {
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (!argument.starts_with("-")) {
      to.checkFile = argument;
      continue;
    }
    auto [name, value] = argument.ltrim('-').split('=');
    if (name == "allow-empty") {
      to.request.AllowEmptyInput = true;
      continue;
    }
    if (!argument.contains('=') && ++i < argc)
      value = argv[i];
    SmallVector<StringRef> prefixes;
    value.split(prefixes, ',');
    if (name == "check-prefix" || name == "check-prefixes")
      to.request.CheckPrefixes.insert(to.request.CheckPrefixes.end(), prefixes.begin(),
                                      prefixes.end());
    else if (name == "input-file")
      to.inputFile = value;
    else {
      errs() << "FileCheck: expected check-prefix, check-prefixes, input-file or allow-empty, got "
             << argument << '\n';
      return false;
    }
  }
  return !to.checkFile.empty();
}

static StringRef addFile(SourceMgr &sources, FileCheck &checker, StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!file) {
    errs() << "FileCheck: cannot read '" << path << "': " << file.getError().message() << '\n';
    return StringRef();
  }
  // FileCheck wants canonical white space, in a buffer of its own.
  SmallString<0> canonical;
  StringRef text = checker.CanonicalizeFile(**file, canonical);
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(text, path), SMLoc());
  return sources.getMemoryBuffer(sources.getNumBuffers())->getBuffer();
}

int attn::runFileCheck(int argc, char **argv) {
  CommandLine command;
  if (!parse(argc, argv, command))
    return 2;
  FileCheck checker(command.request);
  if (!checker.ValidateCheckPrefixes())
    return 2;
  SourceMgr sources;
  StringRef checks = addFile(sources, checker, command.checkFile);
  if (!checks.data() || checker.readCheckFile(sources, checks))
    return 2;
  StringRef input = addFile(sources, checker, command.inputFile);
  if (!input.data())
    return 2;
  if (input.empty() && !command.request.AllowEmptyInput) {
    errs() << "FileCheck: expected some input, got an empty file '" << command.inputFile << "'\n";
    return 2;
  }
  return checker.checkInput(sources, input) ? 0 : 1;
}
