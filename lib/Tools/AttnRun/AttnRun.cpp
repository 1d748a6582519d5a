//===- AttnRun.cpp - compiles, runs, checks and times a kernel --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/AttnRun.h"
#include "lib/Support/Memory.h"
#include "lib/Support/Npy.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Target/CPU/Invoke.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "lib/Tools/AttnRun/Binding.h"
#include "lib/Tools/AttnRun/CudaKernel.h"
#include "lib/Tools/AttnRun/Interpret.h"
#include "lib/Tools/AttnRun/Options.h"
#include "lib/Tools/AttnRun/Report.h"
#include "lib/Tools/AttnRun/Simulate.h"
#include "lib/Tools/AttnRun/Source.h"
#include "lib/Tools/AttnRun/Tune.h"
#include "lib/Tools/AttnRun/Work.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace attn {

namespace {
class Runner {
public:
  Runner(mlir::MLIRContext &context, const RunOptions &options)
      : context(context), options(options) {}

  Expected<Report> run();

private:
  using CompileFn = Expected<std::unique_ptr<CompiledKernel>> (*)(mlir::ModuleOp,
                                                                  const CPUOptions &);

  void showProgress(StringRef what) const {
    if (options.showProgress)
      errs() << "attn-run: " << what << '\n';
  }

  Expected<std::unique_ptr<CompiledKernel>> compile(CompileFn compiler, const JitOptions &jit);
  Expected<std::vector<Array>> allocateResults(const KernelSignature &signature);
  Error check();
  Error runOnCPU();
  Error runOnCUDA();
  Error runOnSimulator();
  Error runOnDevice();
  Error findSizes();
  void setTimes(std::vector<double> times);
  void measure(KernelArguments &arguments, Jit::PackedFn function);
  Error writeOutputs();

  mlir::MLIRContext &context;
  RunOptions options;
  Source source;
  Binding binding;
  std::vector<ArgumentValue> inputs;
  std::vector<Array> outputs;
  /// While sizes are searched, the rows that models are asked about.
  int64_t searchedRows = 0;
  Report report;
};
} // namespace

Expected<std::unique_ptr<CompiledKernel>> Runner::compile(CompileFn compiler,
                                                          const JitOptions &jit) {
  CPUOptions cpuOptions;
  cpuOptions.jit = jit;
  cpuOptions.entry = source.signature.name;
  cpuOptions.schedule = options.schedule;
  // The compiler lowers in place, and the reference needs the source too.
  mlir::OwningOpRef<mlir::ModuleOp> module = source.module->clone();
  return compiler(*module, cpuOptions);
}

Expected<std::vector<Array>> Runner::allocateResults(const KernelSignature &signature) {
  std::vector<Array> results;
  for (auto [type, shape] : zip_equal(signature.results, binding.results)) {
    if (options.predict) {
      results.emplace_back();
      continue;
    }
    Expected<Array> array =
        Array::allocate(type.kind, shape, getMemoryOrder(options, shape.size()));
    if (!array)
      return array.takeError();
    array->poison();
    results.push_back(std::move(*array));
  }
  return std::move(results);
}

Error Runner::check() {
  showProgress("evaluating the definition in f64");
  Stopwatch watch;
  JitOptions jit = options.jit;
  jit.dumpAssembly.clear(), jit.dumpLLVM.clear(), jit.dumpObject.clear();
  Expected<std::unique_ptr<CompiledKernel>> reference = compile(compileReference, jit);
  if (!reference)
    return reference.takeError();
  const KernelSignature &signature = (*reference)->signature;
  KernelArguments arguments;
  std::vector<Array> copies;
  copies.reserve(inputs.size());
  for (auto [input, type] : zip_equal(inputs, signature.arguments)) {
    if (input.isScalar) {
      arguments.addScalar(type.kind, input.scalar);
    } else if (input.array.getKind() == type.kind) {
      arguments.addMemRef(input.array);
    } else {
      Expected<Array> copy = input.array.convert(type.kind);
      if (!copy)
        return copy.takeError();
      arguments.addMemRef(copies.emplace_back(std::move(*copy)));
    }
  }
  Expected<std::vector<Array>> wanted = allocateResults(signature);
  if (!wanted)
    return wanted.takeError();
  for (const Array &array : *wanted)
    arguments.addMemRef(array);
  arguments.call((*reference)->function);

  // Inputs are rounded, and on tensor cores weights too; lse, of (B, H, M), comes from f32 alone.
  bool roundsWeights = options.device == Device::CUDA || options.device == Device::Simulator;
  double inputTolerance = 0;
  for (const ValueType &type : source.signature.arguments)
    inputTolerance = std::max(inputTolerance, getDefaultTolerance(type.kind, roundsWeights));
  for (auto [output, expected, result, facts] :
       zip_equal(outputs, *wanted, report.results, source.results)) {
    Expected<Comparison> comparison = compare(output, expected);
    if (!comparison)
      return comparison.takeError();
    result.error = *comparison;
    double tolerance = getDefaultTolerance(output.getKind(), roundsWeights);
    bool isLse = facts.dims.size() == 3 && facts.dims.back().letter == Letter::M;
    if (isFloat(output.getKind()) && !isLse)
      tolerance = std::max(inputTolerance, tolerance);
    // Differences of products, of which one has the rounded output.
    bool isRounded = inputTolerance > getDefaultTolerance(ElementKind::F32);
    if (options.withGradients && isRounded && StringRef(facts.name).starts_with("d_"))
      tolerance *= 2;
    result.tolerance = options.tolerance.value_or(tolerance);
  }
  report.referenceMs = watch.elapsedMs();
  return Error::success();
}

void Runner::measure(KernelArguments &arguments, Jit::PackedFn function) {
  showProgress("measuring");
  auto timeOnce = [&] {
    Stopwatch watch;
    arguments.call(function);
    return watch.elapsedMs();
  };
  // Clocks, caches and page tables settle within a tenth of the measurement.
  Stopwatch warmUp;
  do
    timeOnce();
  while (warmUp.elapsedMs() < options.benchMs / 10);
  std::vector<double> times;
  Stopwatch total;
  while (times.size() < 5 || (total.elapsedMs() < options.benchMs && times.size() < 10000000))
    times.push_back(timeOnce());
  setTimes(std::move(times));
}

void Runner::setTimes(std::vector<double> times) {
  llvm::sort(times);
  report.timeMs = times[times.size() / 2];
  report.fastestMs = times.front();
  report.numRuns = times.size();
}

Error Runner::writeOutputs() {
  for (auto [output, facts] : zip_equal(outputs, source.results)) {
    auto path = options.outputs.find(facts.name);
    if (path != options.outputs.end())
      if (Error error = writeNpy(path->second, output))
        return error;
  }
  return Error::success();
}

Expected<Report> Runner::run() {
  if (Error error = bind(readSource(context, options.file, options.entry, options.withGradients),
                         options, source, binding))
    return std::move(error);
  if (!options.predict)
    if (Error error = binding.checkMemory(source.signature, options.check))
      return std::move(error);

  showProgress("making inputs");
  Expected<std::vector<ArgumentValue>> made = makeInputs(source, binding, options);
  if (!made)
    return made.takeError();
  inputs = std::move(*made);
  Expected<std::vector<Array>> allocated = allocateResults(source.signature);
  if (!allocated)
    return allocated.takeError();
  outputs = std::move(*allocated);
  report.file = options.file;
  report.entry = source.signature.name;
  report.letters = binding.letters;
  report.isRowsFirst = options.isRowsFirst;
  report.seed = options.seed;
  std::optional<double> kept;
  if (options.flops == FlopCount::Kept && binding.get("M") && binding.get("N"))
    kept = countKeptPairs(source.module->lookupSymbol<mlir::func::FuncOp>(source.signature.name),
                          *binding.get("M"), *binding.get("N"));
  report.flops = binding.countFlops(options.flops, kept);
  report.isWorkGuessed = options.flops == FlopCount::Kept && !kept;
  // A prediction has no arrays.
  for (auto [facts, type, shape] :
       zip_equal(source.results, source.signature.results, binding.results))
    report.results.push_back({facts.name, type.kind, shape, std::nullopt, 0});

  if (options.tune)
    if (Error error = findSizes())
      return std::move(error);
  if (Error error = runOnDevice())
    return std::move(error);
  // A kernel that is wrong has no results.
  if (!report.findings.empty() || options.predict)
    return std::move(report);
  if (Error error = writeOutputs())
    return std::move(error);
  if (options.check)
    if (Error error = check())
      return std::move(error);
  return std::move(report);
}

Error Runner::runOnDevice() {
  return options.device == Device::Simulator ? runOnSimulator()
         : options.device == Device::CUDA    ? runOnCUDA()
                                             : runOnCPU();
}

/// The words of the command about the schedule, with the sizes of a search. Sizes of 0 are the
/// rule's.
static Overrides withSizes(Overrides said, TileSizes sizes) {
  for (auto [field, size] :
       {std::pair(&Schedule::blockM, sizes.blockM), {&Schedule::blockN, sizes.blockN}})
    said.set(field, size ? std::optional(size) : std::nullopt);
  if (sizes.stay)
    said.setStay(true);
  return said;
}

Error Runner::findSizes() {
  RunOptions given = options;
  options.bench = true;
  options.showProgress = false;
  // So that all of them take some twenty times what one does.
  options.benchMs = given.benchMs / 2;
  searchedRows = binding.get("M").value_or(0);
  // Refused sizes are counted, not reported.
  bool isLeftOut = false;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    isLeftOut |= StringRef(diagnostic.str()).contains("left out of the search");
  });
  unsigned numLeftOut = 0;
  auto measureSizes = [&](TileSizes sizes) -> Expected<double> {
    isLeftOut = false;
    llvm::scope_exit count([&] { numLeftOut += isLeftOut; });
    options.schedule = withSizes(given.schedule, sizes);
    if (Error error = runOnDevice())
      return std::move(error);
    report.lines.clear();
    return report.timeMs;
  };
  // Blocks of one part of the keys stay where nobody has said whether they do.
  bool letStay = options.device == Device::CUDA && !given.schedule.has(&Schedule::stay) &&
                 !given.schedule.has(&Schedule::splits);
  auto showTuning = [&](unsigned done, unsigned total) {
    if (given.showProgress)
      errs() << "attn-run: tuning, " << done << " of " << total << '\n';
  };
  Expected<Tuning> tuning = tune(options.device, letStay, measureSizes, showTuning);
  if (!tuning)
    return tuning.takeError();
  options = given;
  searchedRows = 0;
  TileSizes found = tuning->sizes;
  options.schedule = withSizes(given.schedule, found);
  std::string sizes =
      found.blockM == 0 ? std::string("the rule's sizes")
                        : formatv("--block-m={0} --block-n={1}", found.blockM, found.blockN).str();
  if (found.stay)
    sizes += ", --stay=true";
  std::string leftOut =
      numLeftOut ? formatv(", {0} of them by models of registers and memory", numLeftOut).str()
                 : "";
  report.lines.push_back(
      {"tuned",
       formatv("{0}: {1:F4} ms, {2:F4} with the rule's; {3} tried, {4} refused{5}", sizes,
               tuning->fastest, tuning->rule, tuning->numTried, tuning->numRefused, leftOut)
           .str()});
  return Error::success();
}

Error Runner::runOnCPU() {
  showProgress("compiling");
  setThreadCount(options.jit.host.numThreads);
  Expected<std::unique_ptr<CompiledKernel>> kernel = compile(compileForCPU, options.jit);
  if (!kernel)
    return kernel.takeError();
  report.device = "cpu " + options.jit.host.cpu;
  report.schedule = (*kernel)->description;
  report.numThreads = options.jit.host.numThreads;
  report.f32Lanes = options.jit.host.f32Lanes;
  report.passesMs = (*kernel)->passesMs;
  report.llvmMs = (*kernel)->jit->getTimings().total();

  KernelArguments arguments;
  for (auto [input, type] : zip_equal(inputs, source.signature.arguments)) {
    if (input.isScalar)
      arguments.addScalar(type.kind, input.scalar);
    else
      arguments.addMemRef(input.array);
  }
  for (const Array &output : outputs)
    arguments.addMemRef(output);
  showProgress("running");
  Stopwatch watch;
  arguments.call((*kernel)->function);
  report.timeMs = report.fastestMs = watch.elapsedMs();
  if (options.bench)
    measure(arguments, (*kernel)->function);
  return Error::success();
}

Error Runner::runOnCUDA() {
  showProgress("compiling");
  mlir::OwningOpRef<mlir::ModuleOp> module = source.module->clone();
  CUDAOptions cuda;
  cuda.entry = source.signature.name;
  cuda.schedule = options.schedule;
  cuda.target = options.target;
  cuda.way = options.way;
  cuda.search = searchedRows;
  cuda.fused = options.fused;
  Expected<std::unique_ptr<CudaKernel>> kernel = CudaKernel::compile(*module, cuda, binding);
  if (!kernel)
    return kernel.takeError();
  report.device = (*kernel)->describe();
  report.passesMs = (*kernel)->passesMs;
  report.llvmMs = (*kernel)->ptxMs + (*kernel)->loadMs;
  showProgress("running");
  if (Error error = (*kernel)->upload(inputs, outputs))
    return error;
  Stopwatch watch;
  if (Error error = (*kernel)->run(outputs))
    return error;
  report.timeMs = report.fastestMs = watch.elapsedMs();
  if (!options.bench)
    return Error::success();
  showProgress("measuring");
  Expected<std::vector<double>> times = (*kernel)->measure(options.benchMs);
  if (!times)
    return times.takeError();
  setTimes(std::move(*times));
  Expected<CudaKernel::HostTimes> host = (*kernel)->measureHost();
  if (!host)
    return host.takeError();
  std::string text = formatv("{0:F2} us for a launch", host->launch);
  if (host->driver)
    text += formatv(", of which {0:F2} us the driver's", *host->driver);
  report.lines.push_back({"host", std::move(text)});
  return Error::success();
}

Error Runner::runOnSimulator() {
  showProgress("simulating");
  mlir::OwningOpRef<mlir::ModuleOp> module = source.module->clone();
  return simulate(*module, source, binding, inputs, outputs, options, report);
}

int runAttnRun(int argc, const char *const *argv, const mlir::DialectRegistry &registry) {
  auto fail = [](Error error) {
    errs() << "attn-run: error: " << toString(std::move(error)) << '\n';
    return 1;
  };
  Expected<std::optional<RunOptions>> options = parseCommandLine(argc, argv);
  if (!options)
    return fail(options.takeError());
  if (!*options)
    return 0;

  // One small module: threads for MLIR would cost more to start than they save.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  // Errors of passes show the line of the file, as the parser's do.
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  Expected<Report> report = (*options)->device == Device::Interpreter
                                ? runInterpreter(context, **options)
                                : Runner(context, **options).run();
  if (!report)
    return fail(report.takeError());
  if ((*options)->json)
    report->printJson(outs());
  else
    report->printText(outs());
  outs().flush();
  if (outs().has_error()) {
    std::error_code code = outs().error();
    outs().clear_error();
    return fail(createStringError(code, "expected to write the report, got: " + code.message()));
  }
  return report->isRight() ? 0 : 1;
}

} // namespace attn
