//===- Assembled.cpp - what an assembler makes of PTX -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Assembled.h"
#include "lib/Compiler/Ptxas.h"
#include "lib/Runtime/JitLog.h"
#include "llvm/Support/FormatVariadic.h"

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

std::string describeAssembled(const KernelImage &image, const CompileOptions &options) {
  LoadOptions load;
  load.device = options.ordinal;
  Result<Kernel> kernel = Kernel::load(image, load);
  if (kernel)
    return describe(*kernel);
  if (Result<PtxasOutput> made = runPtxas(image.ptx))
    return describe(parseJitLog(made->log));
  return "// assembled   not here: " + kernel.getStatus().message + "; and no ptxas in $PATH\n";
}

} // namespace attn
