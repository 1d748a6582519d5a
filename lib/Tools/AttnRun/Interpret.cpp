//===- Interpret.cpp - runs a file through the interpreter ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Interpret.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Interpreter/MaskProof.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Support/Npy.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace attn {

namespace {
class InterpreterRunner {
public:
  explicit InterpreterRunner(const RunOptions &options) : options(options) {}

  Expected<Report> run(mlir::MLIRContext &context);

private:
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> lower(std::optional<Room> room);
  /// No pass removes or renames the entry.
  mlir::func::FuncOp getEntry(mlir::ModuleOp module) const {
    return module.lookupSymbol<mlir::func::FuncOp>(source.signature.name);
  }
  Error makeArguments();
  Error reportResults(const InterpreterResult &result, mlir::ModuleOp problem);
  void describeSchedule(mlir::func::FuncOp function);

  const RunOptions &options;
  Source source;
  Binding binding;
  std::vector<RuntimeValue> arguments;
  Report report;
};
} // namespace

/// A copy of the source, lowered to `room`; without a room, the source as it is.
Expected<mlir::OwningOpRef<mlir::ModuleOp>> InterpreterRunner::lower(std::optional<Room> room) {
  mlir::OwningOpRef<mlir::ModuleOp> module = source.module->clone();
  if (!room)
    return std::move(module);
  PipelineOptions passes;
  passes.lanes = options.jit.host.f32Lanes;
  passes.bf16Dot = options.jit.host.hasBF16Dot;
  mlir::PassManager pm(module->getContext());
  buildPipeline(pm, passes, *room);
  if (failed(pm.run(*module)))
    return createStringError("expected passes that succeed, got the errors above");
  return std::move(module);
}

/// Only counting, floats that no file or value is given for need no data.
Error InterpreterRunner::makeArguments() {
  Expected<std::vector<ArgumentValue>> inputs = makeInputs(source, binding, options);
  if (!inputs)
    return inputs.takeError();
  for (auto [input, type, shape] :
       zip_equal(*inputs, source.signature.arguments, binding.arguments)) {
    if (input.isScalar) {
      arguments.push_back(isFloat(type.kind) ? RuntimeValue::real(input.scalar)
                          : type.kind == ElementKind::I1
                              ? RuntimeValue::integer(-int64_t(input.scalar != 0))
                              : RuntimeValue::integer(int64_t(input.scalar)));
      continue;
    }
    Expected<TensorRef> tensor =
        input.array.data() ? DenseTensor::fromArray(input.array)
                           : DenseTensor::create(shape, isFloat(type.kind), /*hasData=*/false);
    if (!tensor)
      return tensor.takeError();
    arguments.push_back(std::move(*tensor));
  }
  return Error::success();
}

void InterpreterRunner::describeSchedule(mlir::func::FuncOp function) {
  function->walk([&](mlir::Operation *op) {
    auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    if (!schedule)
      return mlir::WalkResult::advance();
    raw_string_ostream(report.schedule) << "BM=" << schedule->blockM << " BN=" << schedule->blockN
                                        << " splits=" << schedule->splits;
    return mlir::WalkResult::interrupt();
  });
}

/// Compares in f64: the results are not rounded to their types. Two stages then differ by the f32
/// constants that passes fold, for example a user's scale times log2(e).
Error InterpreterRunner::reportResults(const InterpreterResult &result, mlir::ModuleOp problem) {
  constexpr double tolerance = 1e-6;
  std::optional<InterpreterResult> wanted;
  if (options.check) {
    Expected<InterpreterResult> reference = interpret(getEntry(problem), arguments);
    if (!reference)
      return reference.takeError();
    wanted = std::move(*reference);
  }
  std::vector<Array> outputs;
  for (auto [index, facts] : enumerate(source.results)) {
    ResultReport &entry = report.results.emplace_back();
    entry.name = facts.name;
    entry.kind = source.signature.results[index].kind;
    const DenseTensor &tensor = *result.values[index].getTensor();
    entry.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
    if (options.count)
      continue;
    Expected<Array> output = tensor.toArray(entry.kind);
    if (!output)
      return output.takeError();
    outputs.push_back(std::move(*output));
    if (!wanted)
      continue;
    ElementKind exact = isFloat(entry.kind) ? ElementKind::F64 : ElementKind::I64;
    Expected<Array> got = tensor.toArray(exact);
    Expected<Array> reference = wanted->values[index].getTensor()->toArray(exact);
    if (!got || !reference)
      return joinErrors(got.takeError(), reference.takeError());
    Expected<Comparison> comparison = compare(*got, *reference);
    if (!comparison)
      return comparison.takeError();
    entry.error = *comparison;
    entry.tolerance = options.tolerance.value_or(tolerance);
  }
  for (auto [output, facts] : zip(outputs, source.results)) {
    auto path = options.outputs.find(facts.name);
    if (path != options.outputs.end())
      if (Error error = writeNpy(path->second, output))
        return error;
  }
  return Error::success();
}

Expected<Report> InterpreterRunner::run(mlir::MLIRContext &context) {
  if (Error error = bind(readSource(context, options.file, options.entry, options.withGradients),
                         options, source, binding))
    return std::move(error);
  if (!options.count)
    if (Error error = binding.checkMemory(source.signature, /*withReference=*/true))
      return std::move(error);
  if (Error error = makeArguments())
    return std::move(error);

  Stopwatch passes;
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = lower(options.until);
  if (!module)
    return module.takeError();
  report.passesMs = passes.elapsedMs();
  mlir::OwningOpRef<mlir::ModuleOp> problem;
  // A source that is already lowered has no original masks.
  bool isProved = options.count && options.until;
  if (options.check || isProved) {
    Expected<mlir::OwningOpRef<mlir::ModuleOp>> lowered = lower(Room::Problem);
    if (!lowered)
      return lowered.takeError();
    problem = std::move(*lowered);
  }

  InterpreterOptions how;
  how.countOnly = options.count;
  std::optional<OriginalMasks> masks;
  if (isProved) {
    Expected<OriginalMasks> captured = OriginalMasks::capture(getEntry(*problem), arguments);
    if (!captured)
      return captured.takeError();
    how.proveAgainst = &masks.emplace(std::move(*captured));
  }
  Stopwatch watch;
  Expected<InterpreterResult> result = interpret(getEntry(**module), arguments, how);
  if (!result)
    return result.takeError();
  report.timeMs = report.fastestMs = watch.elapsedMs();
  report.counts = result->counts;

  report.file = options.file;
  report.entry = source.signature.name;
  report.device = "interpreter";
  describeSchedule(getEntry(**module));
  report.letters = binding.letters;
  report.isRowsFirst = options.isRowsFirst;
  report.seed = options.seed;
  if (Error error = reportResults(*result, *problem))
    return std::move(error);
  return std::move(report);
}

Expected<Report> runInterpreter(mlir::MLIRContext &context, const RunOptions &options) {
  return InterpreterRunner(options).run(context);
}

} // namespace attn
