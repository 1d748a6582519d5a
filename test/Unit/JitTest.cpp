//===- JitTest.cpp - compiled code and its calls ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/Jit.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Target/CPU/Invoke.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <atomic>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace attn;

static mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context, llvm::StringRef text) {
  context.loadDialect<mlir::LLVM::LLVMDialect, mlir::func::FuncDialect>();
  return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
}

static JitOptions getOptions() {
  JitOptions options;
  llvm::Expected<HostInfo> host = getHostInfo();
  EXPECT_TRUE(bool(host));
  if (host)
    options.host = *host;
  return options;
}

// y[i] = a * x[i] on the threads of the pool; x and y are the memrefs of rank 1 that @scale takes.
static constexpr llvm::StringLiteral scaleModule = R"(
llvm.func @attn_cpu_parallel_for(!llvm.ptr, !llvm.ptr, i64)
llvm.func internal @body(%context: !llvm.ptr, %i: i64) {
  %px = llvm.load %context : !llvm.ptr -> !llvm.ptr
  %y_slot = llvm.getelementptr %context[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %py = llvm.load %y_slot : !llvm.ptr -> !llvm.ptr
  %a_slot = llvm.getelementptr %context[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %a = llvm.load %a_slot : !llvm.ptr -> f32
  %x_at = llvm.getelementptr %px[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %y_at = llvm.getelementptr %py[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %x = llvm.load %x_at : !llvm.ptr -> f32
  %y = llvm.fmul %a, %x : f32
  llvm.store %y, %y_at : f32, !llvm.ptr
  llvm.return
}
llvm.func @scale(%a: f32, %x: !llvm.ptr, %xa: !llvm.ptr, %xo: i64, %n: i64, %xs: i64,
                 %y: !llvm.ptr, %ya: !llvm.ptr, %yo: i64, %yn: i64, %ys: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %context = llvm.alloca %one x !llvm.struct<(ptr, ptr, f32)> : (i64) -> !llvm.ptr
  llvm.store %xa, %context : !llvm.ptr, !llvm.ptr
  %y_slot = llvm.getelementptr %context[8] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %ya, %y_slot : !llvm.ptr, !llvm.ptr
  %a_slot = llvm.getelementptr %context[16] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %a, %a_slot : f32, !llvm.ptr
  %body = llvm.mlir.addressof @body : !llvm.ptr
  llvm.call @attn_cpu_parallel_for(%body, %context, %n) : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.return
}
)";

TEST(JitTest, CallsThroughThePackedConvention) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(context, scaleModule);
  ASSERT_TRUE(module);
  for (OptLevel level : {OptLevel::None, OptLevel::Lean, OptLevel::O2, OptLevel::O3}) {
    JitOptions options = getOptions();
    options.optLevel = level;
    llvm::Expected<std::unique_ptr<Jit>> jit = Jit::compile(*module, options);
    ASSERT_TRUE(bool(jit)) << llvm::toString(jit.takeError());
    llvm::Expected<Jit::PackedFn> function = (*jit)->lookupPacked("scale");
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());

    Array x = llvm::cantFail(Array::allocate(ElementKind::F32, {1000}));
    Array y = llvm::cantFail(Array::allocate(ElementKind::F32, {1000}));
    for (int64_t i = 0; i < 1000; ++i)
      x.set(i, double(i));
    y.poison();
    KernelArguments arguments;
    arguments.addScalar(ElementKind::F32, 2.5);
    arguments.addMemRef(x);
    arguments.addMemRef(y);
    EXPECT_EQ(arguments.size(), 11u);
    arguments.call(*function);
    for (int64_t i = 0; i < 1000; ++i)
      EXPECT_EQ(y.get(i), 2.5 * i);
  }
}

TEST(JitTest, StoresResults) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(context, R"(
llvm.func @add(%a: i32, %b: i32) -> i32 {
  %c = llvm.add %a, %b : i32
  llvm.return %c : i32
})");
  llvm::Expected<std::unique_ptr<Jit>> jit = Jit::compile(*module, getOptions());
  ASSERT_TRUE(bool(jit)) << llvm::toString(jit.takeError());
  Jit::PackedFn function = llvm::cantFail((*jit)->lookupPacked("add"));
  int32_t a = 40, b = 2, c = 0;
  void *arguments[] = {&a, &b, &c};
  function(arguments);
  EXPECT_EQ(c, 42);
}

static std::string getCompileError(llvm::StringRef text) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(context, text);
  llvm::Expected<std::unique_ptr<Jit>> jit = Jit::compile(*module, getOptions());
  if (!jit)
    return llvm::toString(jit.takeError());
  llvm::Expected<Jit::PackedFn> function = (*jit)->lookupPacked("f");
  return function ? "" : llvm::toString(function.takeError());
}

TEST(JitTest, ReportsErrors) {
  EXPECT_NE(getCompileError("func.func @f() { return }").find("expected a module of the LLVM"),
            std::string::npos);
  EXPECT_NE(getCompileError(R"(
llvm.func @attn_no_such_function()
llvm.func @f() {
  llvm.call @attn_no_such_function() : () -> ()
  llvm.return
})")
                .find("attn_no_such_function"),
            std::string::npos);
  EXPECT_NE(getCompileError("llvm.func @g() { llvm.return }").find("'_mlir_f'"), std::string::npos);
  // The assembler's complaint goes through LLVM's diagnostics, not through MLIR's.
  EXPECT_NE(getCompileError(R"(
llvm.func @f() {
  llvm.inline_asm has_side_effects "no such instruction", "" : () -> ()
  llvm.return
})")
                .find("expected LLVM to compile"),
            std::string::npos);
}

TEST(JitTest, SurvivesFatalErrors) {
  // No instruction can be selected for it: LLVM ends the process unless told otherwise.
  EXPECT_NE(getCompileError(R"(
llvm.func @f() -> i32 {
  %0 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
  llvm.return %0 : i32
})")
                .find("expected LLVM to compile the kernel"),
            std::string::npos);
  EXPECT_EQ(getCompileError("llvm.func @f() { llvm.return }"), "");
}

TEST(HostInfoTest, Overrides) {
  HostInfo host = llvm::cantFail(getHostInfo());
  EXPECT_GE(host.numThreads, 1u);
  HostOverride overrides;
  overrides.cpu = "no-such-cpu";
  llvm::Expected<HostInfo> unknown = getHostInfo(overrides);
  ASSERT_FALSE(bool(unknown));
  EXPECT_NE(llvm::toString(unknown.takeError()).find("'no-such-cpu'"), std::string::npos);
#ifdef __x86_64__
  overrides.cpu = "x86-64";
  HostInfo baseline = llvm::cantFail(getHostInfo(overrides));
  EXPECT_EQ(baseline.f32Lanes, 4u);
  EXPECT_FALSE(baseline.hasBF16Dot);
  overrides.cpu = "x86-64-v3";
  if (llvm::Expected<HostInfo> v3 = getHostInfo(overrides)) {
    EXPECT_EQ(v3->f32Lanes, 8u);
    EXPECT_TRUE(v3->hasF16Convert);
  } else {
    EXPECT_LT(host.f32Lanes, 8u) << llvm::toString(v3.takeError());
  }
#endif
}

TEST(ThreadPoolTest, EachIndexOnce) {
  for (unsigned threads : {1u, 2u, 7u}) {
    setThreadCount(threads);
    EXPECT_EQ(getThreadCount(), threads);
    for (int64_t count : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> seen(count);
      parallelFor(count, [&](int64_t i) { ++seen[i]; });
      for (auto &times : seen)
        EXPECT_EQ(times, 1);
    }
  }
  setThreadCount(0);
}

TEST(ThreadPoolTest, LoopsInsideLoops) {
  setThreadCount(4);
  std::atomic<int64_t> sum = 0;
  parallelFor(10, [&](int64_t i) { parallelFor(10, [&](int64_t j) { sum += 10 * i + j; }); });
  EXPECT_EQ(sum, 4950);
  for (int repeat = 0; repeat < 2000; ++repeat)
    parallelFor(4, [&](int64_t) { ++sum; });
  EXPECT_EQ(sum, 4950 + 8000);
  setThreadCount(0);
}

/// The status of a forked child that runs `body` and leaves by `leave`; a signal when it hangs.
static int fork(llvm::function_ref<void()> body, void (*leave)(int)) {
  pid_t child = ::fork();
  if (child == 0) {
    alarm(60);
    body();
    leave(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

static void expectLoopsToRun() {
  std::atomic<int64_t> sum = 0;
  parallelFor(1000, [&](int64_t i) { sum += i; });
  if (sum != 499500)
    _exit(1);
}

TEST(ThreadPoolTest, ChildrenOfForksRunAndEnd) {
  setThreadCount(4);
  expectLoopsToRun();
  EXPECT_EQ(fork([] {}, std::exit), 0);
  EXPECT_EQ(fork(expectLoopsToRun, std::exit), 0);
  EXPECT_EQ(fork([] { EXPECT_EQ(fork(expectLoopsToRun, std::exit), 0); }, std::exit), 0);
  EXPECT_EQ(fork([] { exit(getThreadCount() != 4); }, std::exit), 0);
  setThreadCount(0);
}

TEST(ThreadPoolTest, ForksWhileOthersLoop) {
  setThreadCount(4);
  std::atomic<bool> isOver = false;
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i)
    callers.emplace_back([&] {
      while (!isOver)
        expectLoopsToRun();
    });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(fork(expectLoopsToRun, _exit), 0);
  isOver = true;
  for (std::thread &caller : callers)
    caller.join();
  setThreadCount(0);
}

TEST(ThreadPoolTest, GoesOnAloneWithoutThreads) {
  setThreadCount(4);
  auto run = [] {
    rlimit none = {0, 0};
    // Nothing limits the superuser.
    if (setrlimit(RLIMIT_NPROC, &none) || (geteuid() == 0 && setuid(65534)))
      _exit(2);
    expectLoopsToRun();
  };
  EXPECT_EQ(fork(run, _exit), 0);
  setThreadCount(0);
}
