//===- Program.cpp - runs the execution tests -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Main.h"

int main(int argc, char **argv) { return attn::test::runExecutionTests(argc, argv); }
