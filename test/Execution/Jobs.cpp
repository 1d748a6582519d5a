//===- Jobs.cpp - tests shared by processes -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Jobs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace attn::test {
namespace {

struct Job {
  pid_t pid = -1;
  std::FILE *log = nullptr;
};

Job startJob(unsigned index, unsigned count, int argc, char **argv) {
  Job job;
  job.log = std::tmpfile();
  job.pid = job.log ? fork() : -1;
  if (job.pid != 0)
    return job;
  dup2(fileno(job.log), STDOUT_FILENO);
  dup2(fileno(job.log), STDERR_FILENO);
  setenv("GTEST_TOTAL_SHARDS", std::to_string(count).c_str(), 1);
  setenv("GTEST_SHARD_INDEX", std::to_string(index).c_str(), 1);
  std::vector<char *> arguments;
  for (int i = 0; i < argc; ++i)
    if (!llvm::StringRef(argv[i]).starts_with("--jobs="))
      arguments.push_back(argv[i]);
  // Tests are counted in what they print.
  static char full[] = "--gtest_brief=0";
  arguments.push_back(full);
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

std::string readLog(std::FILE *file) {
  std::string text;
  char buffer[4096];
  std::rewind(file);
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), file))
    text.append(buffer, count);
  std::fclose(file);
  return text;
}

/// The number before " tests ran", 0 if there is none.
unsigned countTests(llvm::StringRef log) {
  llvm::StringRef line = log.split("[==========]").second.rsplit("[==========]").second;
  unsigned count = 0;
  line.ltrim().consumeInteger(10, count);
  return count;
}

/// The lines that begin with `word`.
std::vector<std::string> getLines(llvm::StringRef log, llvm::StringRef word) {
  std::vector<std::string> found;
  llvm::SmallVector<llvm::StringRef> lines;
  log.split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line.starts_with(word))
      found.push_back(line.str());
  return found;
}

/// Sums of the numbers in the lines "random: 1 kernels, 2 configurations, 3 mismatches".
struct Totals {
  unsigned counts[3] = {0, 0, 0};

  void add(llvm::StringRef log) {
    for (llvm::StringRef line : getLines(log, "random: "))
      for (unsigned &total : counts) {
        unsigned count = 0;
        line = line.drop_until(llvm::isDigit);
        line.consumeInteger(10, count);
        total += count;
      }
  }
};

/// What is between "[ RUN" and "[  FAILED" of each test that failed; everything if the process
/// died.
void printFailures(llvm::StringRef log, bool ended) {
  if (!ended) {
    llvm::outs() << log.take_back(8000) << '\n';
    return;
  }
  llvm::SmallVector<llvm::StringRef> tests;
  log.split(tests, "[ RUN      ]");
  for (llvm::StringRef test : llvm::drop_begin(tests))
    if (size_t at = test.find("[  FAILED  ]"); at != llvm::StringRef::npos)
      llvm::outs() << "[ RUN      ]" << test.take_front(std::min<size_t>(at, 3000))
                   << "[  FAILED  ]\n";
}

} // namespace

int runJobs(unsigned count, int argc, char **argv) {
  std::vector<Job> jobs;
  for (unsigned i = 0; i < count; ++i)
    jobs.push_back(startJob(i, count, argc, argv));
  unsigned numTests = 0, numBad = 0;
  Totals totals;
  std::vector<std::string> reproducers;
  std::string head;
  for (Job &job : jobs) {
    int status = -1;
    bool ended = job.pid > 0 && waitpid(job.pid, &status, 0) == job.pid && WIFEXITED(status);
    std::string log = job.log ? readLog(job.log) : "";
    if (head.empty())
      head = llvm::StringRef(log).split('\n').first.str();
    numTests += countTests(log);
    totals.add(log);
    llvm::append_range(reproducers, getLines(log, "reproduce: "));
    if (ended && WEXITSTATUS(status) == 0)
      continue;
    ++numBad;
    printFailures(log, ended && countTests(log) > 0);
  }
  for (const std::string &line : reproducers)
    llvm::outs() << line << '\n';
  if (totals.counts[0])
    llvm::outs() << llvm::formatv("random: {0} kernels, {1} configurations, {2} mismatches\n",
                                  totals.counts[0], totals.counts[1], totals.counts[2]);
  llvm::outs() << head << "; " << numTests << " tests in " << count << " processes, "
               << (numBad      ? std::to_string(numBad) + " of them with failures"
                   : !numTests ? "expected a test that the filter matches"
                               : "all passed")
               << '\n';
  llvm::outs().flush();
  return numBad || !numTests ? 1 : 0;
}

} // namespace attn::test
