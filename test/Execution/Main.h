//===- Main.h - the execution tests as a program --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_MAIN_H
#define ATTN_TEST_EXECUTION_MAIN_H

namespace attn::test {

/// The whole of the program. Returns the exit code.
int runExecutionTests(int argc, char **argv);

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_MAIN_H
