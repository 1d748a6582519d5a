//===- Jobs.cpp - several processes that fuzz side by side ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Jobs.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Format.h"
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace attn::fuzz {

static SmallVector<uint64_t Report::*> getFields() {
  return {&Report::crashes, &Report::excused, &Report::unconfirmed, &Report::lost};
}

static SmallVector<uint64_t Counts::*> getCounts() {
  return {&Counts::candidates, &Counts::valid, &Counts::mutants, &Counts::actions,
          &Counts::refused};
}

void Report::add(const Report &other) {
  for (auto field : getCounts())
    counts.*field += other.counts.*field;
  for (auto field : getFields())
    this->*field += other.*field;
  for (const auto &[title, count] : other.findings)
    findings[title] += count;
}

void Report::print(raw_ostream &os, double seconds) const {
  auto percent = [](uint64_t part, uint64_t whole) { return whole ? 100.0 * part / whole : 0.0; };
  os << "mutants: " << counts.mutants << " in "
     << format("%.0f s (%.0f/s), %.0f%% of mutations verify, ", seconds, counts.mutants / seconds,
               percent(counts.valid, counts.candidates))
     << counts.actions << " actions, "
     << format("%.0f%% of them refused\n", percent(counts.refused, counts.actions))
     << "findings: " << findings.size() << " (excused: " << excused
     << " times; not from the text: " << unconfirmed << " times)\n";
  for (const auto &[title, count] : findings)
    os << "  " << count << "x " << title << "\n";
  if (lost)
    os << "lost: " << lost << " jobs that ended without a report\n";
}

//===----------------------------------------------------------------------------------------===//
// From process to process: numbers on the first line, then one line a finding
//===----------------------------------------------------------------------------------------===//

static std::string encode(const Report &report) {
  std::string text;
  raw_string_ostream os(text);
  for (auto field : getCounts())
    os << report.counts.*field << " ";
  for (auto field : getFields())
    os << report.*field << " ";
  os << "\n";
  for (const auto &[title, count] : report.findings)
    os << count << " " << title << "\n";
  return text;
}

static bool takeNumber(StringRef &text, uint64_t &number) {
  bool isNone = text.consumeInteger(10, number);
  text.consume_front(" ");
  return !isNone;
}

static bool decode(StringRef text, Report &report) {
  auto [numbers, lines] = text.split('\n');
  for (auto field : getCounts())
    if (!takeNumber(numbers, report.counts.*field))
      return false;
  for (auto field : getFields())
    if (!takeNumber(numbers, report.*field))
      return false;
  while (!lines.empty()) {
    auto [line, rest] = lines.split('\n');
    uint64_t count = 0;
    if (!takeNumber(line, count))
      return false;
    report.findings[line.str()] = count;
    lines = rest;
  }
  return true;
}

static std::string readAll(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(file, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, got);
  return text;
}

Report runJobs(unsigned jobs, function_ref<Report(unsigned job)> body) {
  if (jobs <= 1)
    return body(0);
  struct Job {
    pid_t process;
    int file;
  };
  SmallVector<Job> running;
  for (unsigned job = 0; job < jobs; ++job) {
    int ends[2];
    outs().flush();
    if (pipe(ends) != 0)
      report_fatal_error("expected a pipe, got none");
    pid_t process = fork();
    if (process < 0)
      report_fatal_error("expected another process, got none");
    if (process == 0) {
      close(ends[0]);
      std::string text = encode(body(job));
      outs().flush();
      bool isWhole = write(ends[1], text.data(), text.size()) == ssize_t(text.size());
      _exit(isWhole ? 0 : 1);
    }
    close(ends[1]);
    running.push_back({process, ends[0]});
  }
  Report total;
  for (Job job : running) {
    Report report;
    if (decode(readAll(job.file), report))
      total.add(report);
    else
      ++total.lost;
    close(job.file);
    waitpid(job.process, nullptr, 0);
  }
  return total;
}

} // namespace attn::fuzz
