//===- FileCheck.h - LLVM's FileCheck inside another program --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTN_TOOLS_FILECHECK_H
#define ATTN_TOOLS_ATTN_TOOLS_FILECHECK_H

namespace attn {

/// FileCheck FILE [--check-prefix=A] [--check-prefixes=A,B] [--input-file=F] [--allow-empty]: the
/// options that the tests use. 0 when the input matches, 1 when not, 2 after an error.
int runFileCheck(int argc, char **argv);

} // namespace attn

#endif // ATTN_TOOLS_ATTN_TOOLS_FILECHECK_H
