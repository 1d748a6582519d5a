//===- Ptxas.cpp - the assembler of PTX, where one is installed ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Ptxas.h"
#include "lib/Runtime/JitLog.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <list>
#include <optional>

using namespace llvm;

namespace attn {

/// "sm_90a", as the text says.
static StringRef getTarget(StringRef ptx) {
  return ptx.split("\n.target ").second.take_until([](char c) { return c == ',' || isSpace(c); });
}

namespace {
/// Temporary files, removed at the end.
class TemporaryFiles {
public:
  /// Of that kind; empty where none can be made.
  std::string make(StringRef kind) {
    SmallString<128> path;
    if (sys::fs::createTemporaryFile("attn", kind, path))
      return "";
    removers.emplace_back(path);
    return std::string(path);
  }

private:
  std::list<FileRemover> removers;
};
} // namespace

static std::string readWhole(const std::string &path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(path);
  return text ? (*text)->getBuffer().str() : "";
}

Result<PtxasOutput> runPtxas(const std::string &ptx) {
  ErrorOr<std::string> program = sys::findProgramByName("ptxas");
  if (!program)
    return Status{StatusCode::InvalidArgument, "expected ptxas in $PATH, got none",
                  "install the CUDA toolkit, or the package nvidia-cuda-nvcc"};
  TemporaryFiles files;
  std::string input = files.make("ptx"), output = files.make("cubin"), log = files.make("log");
  std::error_code error;
  if (!input.empty())
    raw_fd_ostream(input, error) << ptx;
  if (input.empty() || output.empty() || log.empty() || error)
    return Status{StatusCode::InvalidArgument, "expected to write temporary files, got none", ""};
  std::string arch = "-arch=" + getTarget(ptx).str();
  StringRef arguments[] = {*program, "-v", arch, "-o", output, input};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  int code = sys::ExecuteAndWait(*program, arguments, /*Env=*/std::nullopt, redirects,
                                 /*SecondsToWait=*/60);
  PtxasOutput made{readWhole(output), readWhole(log)};
  if (code)
    return Status{StatusCode::InvalidKernel,
                  "expected PTX that ptxas assembles, got: " + excerptErrors(made.log), ""};
  return made;
}

} // namespace attn
