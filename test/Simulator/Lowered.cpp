//===- Lowered.cpp - attentions as kernels of room 6 ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Simulator/Lowered.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Registration/Registration.h"
#include "lib/Support/Compare.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Target/CPU/HostInfo.h"
#include "lib/Target/CPU/Invoke.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace attn::test {

std::string Job::name() const {
  return llvm::formatv("{0} {1} D={2} Dv={3} M={4} N={5} stages={6}{7}", variant.name, problem.type,
                       problem.d, problem.dv, problem.blockM, problem.blockN, stages,
                       problem.withLse ? " lse" : "");
}

mlir::MLIRContext &getContext() {
  static mlir::MLIRContext &context = *[] {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    auto *made = new mlir::MLIRContext(registry, mlir::MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  }();
  return context;
}

static mlir::OwningOpRef<mlir::ModuleOp> parse(const Job &job) {
  return mlir::parseSourceString<mlir::ModuleOp>(makeSource(job.variant, job.problem),
                                                 &getContext());
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> lower(const Job &job, Room until) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(job);
  if (!module)
    return llvm::createStringError("expected a source that parses");
  PipelineOptions online;
  online.target = job.target;
  Overrides said;
  for (auto [field, value, rule] : {std::tuple(&Schedule::blockM, job.problem.blockM, int64_t(0)),
                                    std::tuple(&Schedule::blockN, job.problem.blockN, int64_t(0)),
                                    std::tuple(&Schedule::splits, job.problem.splits, int64_t(1)),
                                    std::tuple(&Schedule::stages, int64_t(job.stages), int64_t(0))})
    if (value != rule)
      said.set(field, value);
  online.schedule = said;
  mlir::PassManager pm(&getContext());
  buildPipeline(pm, online, until);
  if (failed(pm.run(*module)))
    return llvm::createStringError("expected passes that succeed");
  return std::move(module);
}

mlir::func::FuncOp getKernel(mlir::ModuleOp module) {
  for (auto function : module.getOps<mlir::func::FuncOp>())
    if (function->hasAttr(tile::TileDialect::kKernelAttrName))
      return function;
  return {};
}

Call::Call(const Job &job, const Extents &extents, uint64_t seed)
    : inputs(makeInputs(job.variant, job.problem, extents, seed)), type(job.problem.type) {
  ElementKind kind = inputs[0].array.getKind();
  outputs.push_back(allocate(kind, {extents.batch, extents.heads, extents.m, job.problem.dv},
                             job.problem.memory));
  if (job.problem.withLse)
    outputs.push_back(allocate(ElementKind::F32, {extents.batch, extents.heads, extents.m}));
  evaluateReference(job);
}

/// Compiling costs more than running: each function once.
static CompiledKernel &getReference(const Job &job) {
  static std::map<std::string, std::unique_ptr<CompiledKernel>> known;
  std::unique_ptr<CompiledKernel> &kernel = known[makeSource(job.variant, job.problem)];
  if (!kernel) {
    mlir::OwningOpRef<mlir::ModuleOp> module = parse(job);
    CPUOptions options;
    options.jit.host = llvm::cantFail(getHostInfo());
    kernel = llvm::cantFail(compileReference(*module, options));
  }
  return *kernel;
}

void Call::evaluateReference(const Job &job) {
  CompiledKernel &reference = getReference(job);
  KernelArguments arguments;
  std::vector<Array> copies;
  copies.reserve(inputs.size());
  for (auto [input, type] : llvm::zip_equal(inputs, reference.signature.arguments)) {
    if (input.isScalar)
      arguments.addScalar(type.kind, input.scalar);
    else if (input.array.getKind() == type.kind)
      arguments.addMemRef(input.array);
    else
      arguments.addMemRef(copies.emplace_back(llvm::cantFail(input.array.convert(type.kind))));
  }
  for (auto [output, type] : llvm::zip_equal(outputs, reference.signature.results))
    arguments.addMemRef(wanted.emplace_back(allocate(type.kind, output.getShape())));
  arguments.call(reference.function);
}

std::vector<sim::Argument> Call::getArguments() {
  std::vector<sim::Argument> arguments;
  for (Input &input : inputs) {
    if (!input.isScalar) {
      arguments.push_back(sim::Argument::of(input.array));
      continue;
    }
    sim::Argument &argument = arguments.emplace_back();
    argument.isScalar = true;
    argument.scalar.f = input.scalar;
  }
  for (Array &output : outputs) {
    output.poison();
    arguments.push_back(sim::Argument::of(output));
  }
  return arguments;
}

double Call::getError() {
  double worst = 0;
  for (auto [output, reference] : llvm::zip_equal(outputs, wanted)) {
    Comparison comparison = llvm::cantFail(compare(output, reference));
    bool isBroken = comparison.numNaN || comparison.numUnwritten;
    worst = std::max(worst, isBroken ? HUGE_VAL : comparison.maxRelative);
  }
  return worst;
}

/// Errors are relative to the root mean square of all elements. Rows that keep nothing are zeros
/// and would make it, and so the bound, smaller than that of the other rows.
double Call::getTolerance() const {
  llvm::ArrayRef<double> values(wanted[0].dataAs<double>(), wanted[0].size());
  double filled = 1 - double(llvm::count(values, 0.0)) / double(values.size());
  // The bound for f16 is twice what PyTorch's kernels differ by; rows of few keys, of which these
  // shapes are full, need half as much again.
  double bound = type == "f16" ? 1.5 * getDefaultTolerance(ElementKind::F16)
                               : getDefaultTolerance(ElementKind::BF16);
  return bound / std::sqrt(std::max(filled, 1e-6));
}

/// Of a Simulator or a Launch.
template <typename T>
static std::string simulateAny(const T &simulator, Call &call, uint64_t firstSeed, unsigned seeds,
                               unsigned numbered) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const sim::Finding &finding : simulator.getFindings())
    finding.print(os);
  std::vector<sim::Argument> arguments = call.getArguments();
  for (unsigned seed = 0; seed < seeds && text.empty(); ++seed) {
    sim::Options options;
    options.seed = firstSeed + seed;
    options.numbers = seed < numbered;
    auto findings = simulator.run(arguments, options);
    if (!findings)
      return toString(findings.takeError());
    for (const sim::Finding &finding : *findings)
      finding.print(os);
    // Not "greater": the error may be no number.
    if (options.numbers && text.empty() && !(call.getError() <= call.getTolerance()))
      os << llvm::formatv("wrong values: error {0:e2}, at most {1:e2}\n", call.getError(),
                          call.getTolerance());
    if (!text.empty())
      os << "seed " << *options.seed << '\n';
  }
  return text;
}

std::string simulate(const sim::Simulator &simulator, Call &call, uint64_t firstSeed,
                     unsigned seeds, unsigned numbered) {
  return simulateAny(simulator, call, firstSeed, seeds, numbered);
}

std::string simulate(const sim::Launch &launch, Call &call, uint64_t firstSeed, unsigned seeds,
                     unsigned numbered) {
  return simulateAny(launch, call, firstSeed, seeds, numbered);
}

} // namespace attn::test
