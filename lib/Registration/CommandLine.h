//===- CommandLine.h - what tools say of themselves and of their options ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_REGISTRATION_COMMANDLINE_H
#define ATTN_LIB_REGISTRATION_COMMANDLINE_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace attn {

/// Attn's version and commit, LLVM's version, and what kernels are compiled for.
void printVersion(llvm::raw_ostream &os, llvm::StringRef tool);

/// Makes that the answer of a tool whose options LLVM parses, and hides from its help the hundreds
/// of options that LLVM's libraries have registered when they were loaded.
void prepareCommandLine(llvm::StringLiteral tool);

/// One line of ours from the lines in which LLVM complains of a command line. An unknown option
/// gets the name of ours that is at most two letters away.
std::string describeComplaint(llvm::StringRef tool, llvm::StringRef complaint);

} // namespace attn

#endif // ATTN_LIB_REGISTRATION_COMMANDLINE_H
