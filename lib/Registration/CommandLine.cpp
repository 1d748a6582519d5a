//===- CommandLine.cpp - what tools say of themselves and of their options ----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Registration/CommandLine.h"
#include "commit.inc"
#include "lib/Machine/Machine.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

void attn::printVersion(raw_ostream &os, StringRef tool) {
  StringRef commit = ATTN_COMMIT;
  os << tool << ' ' << ATTN_VERSION;
  if (!commit.empty())
    os << " (" << commit << ')';
  os << "\nLLVM " LLVM_VERSION_STRING "\ntargets: cpu (" << sys::getHostCPUName() << ")";
  for (const Machine *machine : getMachines())
    os << ", " << machine->name;
  os << '\n';
}

void attn::prepareCommandLine(StringLiteral tool) {
  for (auto &[name, option] : cl::getRegisteredOptions())
    option->setHiddenFlag(cl::Hidden);
  cl::SetVersionPrinter([tool](raw_ostream &os) { printVersion(os, tool); });
}

/// The option of this tool whose name is nearest; empty: none is near.
static std::string findNearest(StringRef name) {
  std::string nearest;
  unsigned least = 3;
  for (auto &[other, option] : cl::getRegisteredOptions()) {
    if (option->getOptionHiddenFlag() != cl::NotHidden || other.size() < 2)
      continue;
    unsigned distance = name.edit_distance(other, /*AllowReplacements=*/true, least);
    if (distance < least)
      least = distance, nearest = ("--" + other).str();
  }
  return nearest;
}

std::string attn::describeComplaint(StringRef tool, StringRef complaint) {
  SmallVector<StringRef> lines;
  complaint.trim().split(lines, '\n', -1, /*KeepEmpty=*/false);
  // Of some mistakes LLVM complains on the standard error stream.
  if (lines.empty())
    return "expected valid options, got the mistake above (--help shows the options)";
  constexpr StringLiteral unknown = "Unknown command line argument '";
  if (size_t at = complaint.find(unknown); at != StringRef::npos) {
    StringRef word = complaint.substr(at + unknown.size()).split('\'').first;
    std::string nearest = findNearest(word.ltrim('-').split('=').first);
    return ("expected an option of " + tool + ", got " + word +
            (nearest.empty() ? " (--help shows the options)" : " (the nearest is " + nearest + ")"))
        .str();
  }
  for (StringRef &line : lines) {
    // LLVM begins each line with the path of the program.
    size_t end = line.find(": ");
    if (end != StringRef::npos && line.take_front(end).ends_with(tool))
      line = line.drop_front(end + 2);
  }
  return join(lines, " ");
}
