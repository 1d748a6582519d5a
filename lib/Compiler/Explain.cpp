//===- Explain.cpp - the compiler's decisions as text -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Explain.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Tools/AttnOpt/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// For every device
//===----------------------------------------------------------------------------------------===//

static std::optional<Door> getDoor(std::string_view room) {
  if (room == "problem")
    return Door::Problem;
  if (room == "grid")
    return Door::Grid;
  if (room == "online")
    return Door::Online;
  return std::nullopt;
}

/// `source:2:3: [Analysis] mask-tiles | Category:attn | Remark="keeps n < m1"` as
/// `// mask-tiles  keeps n < m1`. What has another form stays as it is.
void printRemark(raw_ostream &os, StringRef remark) {
  StringRef name = remark.split("] ").second.split(" |").first.trim();
  StringRef text = remark.split("Remark=\"").second;
  if (name.empty() || text.empty())
    os << "// remark      " << remark << '\n';
  else
    os << "// " << left_justify(name, 12) << text.drop_back(text.ends_with("\"")) << '\n';
}

Explainer::Explainer() {
  registerDialects(registry);
  context.emplace(registry, mlir::MLIRContext::Threading::DISABLED);
  // Only kinds that are named are on.
  mlir::remark::RemarkCategories categories{"attn", "attn", "attn", "attn", "attn"};
  (void)mlir::remark::enableOptimizationRemarks(
      *context, /*streamer=*/nullptr, std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(),
      categories, /*printAsEmitRemarks=*/true);
}

Status Explainer::parse(std::string_view source, const CompileOptions &options) {
  Result<ParsedSource> result = parseSource(*context, source, options);
  if (!result)
    return result.takeStatus();
  parsed = std::move(*result);
  diagnostics.emplace(*context);
  return {};
}

Status Explainer::run(function_ref<void(mlir::OpPassManager &)> build) {
  mlir::PassManager pm(&*context);
  build(pm);
  if (failed(pm.run(*parsed.module)))
    return diagnostics->fail("expected passes to succeed");
  return {};
}

//===----------------------------------------------------------------------------------------===//
// For the CPU
//===----------------------------------------------------------------------------------------===//

static Result<std::string> explainForHost(std::string_view source, const CompileOptions &options,
                                          Door door) {
  Result<HostInfo> host = resolveHost(options);
  if (!host)
    return host.takeStatus();
  // Times are those of a whole compilation, whatever the door.
  Result<CompiledFunction> function = compileForHost(source, options);
  if (!function)
    return function.takeStatus();

  Explainer explainer;
  if (Status status = explainer.parse(source, options); !status.ok())
    return status;
  ToOnlineOptions online;
  online.lanes = host->f32Lanes;
  online.bf16Dot = host->hasBF16Dot;
  online.blockM = options.blockM;
  online.blockN = options.blockN;
  online.splits = options.splits;
  Status status =
      explainer.run([&](mlir::OpPassManager &pm) { buildToOnlinePipeline(pm, online, door); });
  if (!status.ok())
    return status;

  std::string text;
  raw_string_ostream os(text);
  const FunctionInfo &info = function->getInfo();
  os << formatv("// device      cpu {0}, {1} threads, {2} lanes of f32\n", host->cpu,
                host->numThreads, host->f32Lanes);
  for (StringRef remark : explainer.getRemarks())
    printRemark(os, remark);
  os << formatv("// compile     {0:f1} ms (passes {1:f1}, LLVM {2:f1})\n",
                info.passesMs + info.llvmMs, info.passesMs, info.llvmMs);
  explainer.getModule().print(os);
  return text;
}

Result<std::string> explain(std::string_view source, const CompileOptions &options,
                            std::string_view until) {
  if (options.device == DeviceKind::CUDA)
    return explainForGPU(source, options, until);
  if (std::optional<Door> door = getDoor(until))
    return explainForHost(source, options, *door);
  return Status{StatusCode::InvalidArgument,
                ("until: expected problem, grid or online, got '" + Twine(until) + "'").str(), ""};
}

} // namespace attn
