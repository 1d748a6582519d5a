//===- Assembled.cpp - what an assembler makes of PTX -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Assembled.h"
#include "lib/Runtime/JitLog.h"
#include "lib/Target/PTX/EmitPTX.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace attn {

static std::string describe(const Kernel &kernel) {
  std::string text;
  for (const KernelInfo &info : kernel.getKernels())
    text += formatv("// assembled   {0}: {1} registers, {2} bytes of local memory, on {3}\n",
                    info.name, info.registers, info.localBytes, kernel.getDevice().name);
  for (const std::string &warning : kernel.getWarnings())
    text += "// assembler   " + warning + "\n";
  return text;
}

static std::string describe(const JitLog &log) {
  std::string text;
  for (const JitLog::Entry &entry : log.entries)
    text += formatv("// assembled   {0}: {1} registers, {2} bytes of spill stores, {3} of spill "
                    "loads, by ptxas\n",
                    entry.name, entry.registers, entry.spillStoreBytes, entry.spillLoadBytes);
  for (const std::string &warning : log.warnings)
    text += "// assembler   " + warning + "\n";
  return text;
}

/// "sm_90a", as the text says.
static StringRef getTarget(StringRef ptx) {
  return ptx.split("\n.target ").second.take_until([](char c) { return c == ',' || isSpace(c); });
}

/// The log of `ptxas -v`; nothing where it does not run or refuses.
static std::optional<std::string> runAssembler(StringRef ptx) {
  ErrorOr<std::string> program = sys::findProgramByName("ptxas");
  SmallString<128> input, log;
  int file = -1;
  if (!program || sys::fs::createTemporaryFile("attn", "ptx", file, input))
    return std::nullopt;
  FileRemover removeInput(input);
  raw_fd_ostream(file, /*shouldClose=*/true) << ptx;
  if (sys::fs::createTemporaryFile("attn", "log", log))
    return std::nullopt;
  FileRemover removeLog(log);
  std::string arch = "-arch=" + getTarget(ptx).str();
  StringRef arguments[] = {*program, "-v", arch, "-o", "/dev/null", input};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  if (sys::ExecuteAndWait(*program, arguments, /*Env=*/std::nullopt, redirects,
                          /*SecondsToWait=*/60))
    return std::nullopt;
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(log);
  if (!text)
    return std::nullopt;
  return (*text)->getBuffer().str();
}

std::string describeAssembled(const KernelImage &image, const CompileOptions &options) {
  LoadOptions load;
  load.device = options.ordinal;
  Result<Kernel> kernel = Kernel::load(image, load);
  if (kernel)
    return describe(*kernel);
  if (std::optional<std::string> log = runAssembler(image.ptx))
    return describe(parseJitLog(*log));
  return "// assembled   not here: " + kernel.getStatus().message + "; and no ptxas in $PATH\n";
}

} // namespace attn
