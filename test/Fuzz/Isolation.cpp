//===- Isolation.cpp - a process for what may crash -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Isolation.h"
#include "llvm/Support/ErrorHandling.h"
#include <csignal>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace attn::fuzz {

static constexpr int kReported = 77;
/// A machine that does other things too may take this much longer than the processor time.
static constexpr int kWallPerCPU = 12;
/// What one mutant may allocate; more is a finding, before it is the machine's trouble.
static constexpr rlim_t kMemory = rlim_t(12) << 30;

/// For the handler, which sees nothing else.
static Progress *shared = nullptr;

Isolation::Isolation(double cpuSeconds) : cpuSeconds(cpuSeconds) {
  void *memory =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  log = memfd_create("log", 0);
  if (memory == MAP_FAILED || log < 0)
    llvm::report_fatal_error("expected shared memory, got none");
  progress = shared = static_cast<Progress *>(memory);
  // The first call loads a library, which a handler should not.
  void *frames[4];
  (void)backtrace(frames, 4);
}

Isolation::~Isolation() {
  munmap(progress, sizeof(Progress));
  close(log);
}

static void onFatalSignal(int signal) {
  shared->signal = signal;
  shared->numFrames = backtrace(shared->frames, std::size(shared->frames));
  // The handler is gone: the signal ends the process.
  raise(signal);
}

static void installHandlers() {
  // A stack that is used up cannot run its own handler.
  static char stack[1 << 16];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGPROF, SIGALRM}) {
    struct sigaction action = {};
    action.sa_handler = onFatalSignal;
    action.sa_flags = SA_RESETHAND | SA_ONSTACK | SA_NODEFER;
    sigaction(signal, &action, nullptr);
  }
}

void Isolation::startClock() {
  // What runs code that it has generated puts others there.
  installHandlers();
  itimerval timer = {};
  timer.it_value.tv_sec = long(cpuSeconds);
  timer.it_value.tv_usec = long((cpuSeconds - long(cpuSeconds)) * 1e6);
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(unsigned(cpuSeconds * kWallPerCPU) + 1);
}

void Isolation::report() { _exit(kReported); }

static std::string readLog(int file) {
  off_t size = lseek(file, 0, SEEK_END), start = std::max<off_t>(0, size - 4096);
  std::string text(size - start, 0);
  ssize_t got = pread(file, text.data(), text.size(), start);
  text.resize(std::max<ssize_t>(0, got));
  return text;
}

Ending Isolation::run(llvm::function_ref<void(Progress &)> body) {
  fflush(nullptr);
  progress->signal = progress->numFrames = progress->faultKind = 0;
  if (ftruncate(log, 0) != 0 || lseek(log, 0, SEEK_SET) != 0)
    llvm::report_fatal_error("expected an empty log");
  pid_t child = fork();
  if (child < 0)
    llvm::report_fatal_error("expected another process, got none");
  if (child == 0) {
    dup2(log, STDERR_FILENO);
    dup2(log, STDOUT_FILENO);
    installHandlers();
#if !__has_feature(address_sanitizer)
    rlimit limit = {kMemory, kMemory};
    setrlimit(RLIMIT_AS, &limit);
#endif
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    startClock();
    body(*progress);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Ending ending;
  ending.progress = *progress;
  ending.log = readLog(log);
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    ending.kind = signal == SIGPROF || signal == SIGALRM ? Ending::Hung : Ending::Crashed;
    ending.progress.signal = signal;
  } else if (WEXITSTATUS(status) == kReported) {
    ending.kind = Ending::Reported;
  } else if (WEXITSTATUS(status) != 0) {
    ending.kind = Ending::Exited;
  }
  return ending;
}

} // namespace attn::fuzz
