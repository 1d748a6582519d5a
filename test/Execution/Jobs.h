//===- Jobs.h - tests shared by processes ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_JOBS_H
#define ATTN_TEST_EXECUTION_JOBS_H

namespace attn::test {

/// Runs this program in `count` processes, each with a share of the tests (GoogleTest's shards).
/// Prints what those say that fail, and one summary. Returns the exit code. Kernels are compiled
/// by one thread each, so this is how a machine with many cores is used.
int runJobs(unsigned count, int argc, char **argv);

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_JOBS_H
