//===- Explain.cpp - the compiler's decisions as text -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Explain.h"
#include "lib/Rooms/Rooms.h"
#include "lib/Support/ForkGate.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// For every device
//===----------------------------------------------------------------------------------------===//

void printRemark(raw_ostream &os, const PassRemark &remark) {
  os << "// " << left_justify(remark.name, 12) << remark.text << '\n';
}

Status refuseDoor(std::string_view door, std::string_view known) {
  return Status{StatusCode::InvalidArgument,
                formatv("until: expected {0}, got '{1}'", known, door).str(), ""};
}

namespace {
/// Keeps remarks as what they are made of. The context owns it, and ends after whoever reads them.
struct RemarkKeeper : mlir::remark::detail::MLIRRemarkStreamerBase {
  explicit RemarkKeeper(std::shared_ptr<std::vector<PassRemark>> kept) : kept(std::move(kept)) {}

  void streamOptimizationRemark(const mlir::remark::detail::Remark &remark) override {
    kept->push_back({remark.getRemarkName().str(), ""});
    for (const auto &argument : remark.getArgs())
      kept->back().text += argument.val;
  }

  std::shared_ptr<std::vector<PassRemark>> kept;
};
} // namespace

DoorVisitor observeDoors(mlir::MLIRContext &context, DoorObserver observe) {
  if (!observe)
    return nullptr;
  auto kept = std::make_shared<std::vector<PassRemark>>();
  // Only kinds that are named are on.
  mlir::remark::RemarkCategories categories{"attn", "attn", "attn", "attn", "attn"};
  (void)mlir::remark::enableOptimizationRemarks(
      context, std::make_unique<RemarkKeeper>(kept),
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories);
  return [kept, observe](StringRef room, mlir::ModuleOp module) { observe(room, module, *kept); };
}

//===----------------------------------------------------------------------------------------===//
// For the CPU
//===----------------------------------------------------------------------------------------===//

static Result<std::string> explainForHost(std::string_view source, const CompileOptions &options,
                                          std::string_view until) {
  Result<HostInfo> host = resolveHost(options);
  if (!host)
    return host.takeStatus();
  std::vector<PassRemark> remarks;
  std::string ir;
  auto observe = [&](StringRef room, mlir::ModuleOp module, ArrayRef<PassRemark> said) {
    if (room != StringRef(until))
      return;
    remarks = said;
    raw_string_ostream os(ir);
    module.print(os);
  };
  // Times are those of a whole compilation, whatever the door.
  Result<CompiledFunction> function = compileForHost(source, options, observe);
  if (!function)
    return function.takeStatus();

  std::string text;
  raw_string_ostream os(text);
  const FunctionInfo &info = function->getInfo();
  os << formatv("// device      cpu {0}, {1} threads, {2} lanes of f32\n", host->cpu,
                host->numThreads, host->f32Lanes);
  for (const PassRemark &remark : remarks)
    printRemark(os, remark);
  os << formatv("// compile     {0:f1} ms (passes {1:f1}, LLVM {2:f1})\n",
                info.passesMs + info.llvmMs, info.passesMs, info.llvmMs);
  os << ir;
  return text;
}

Result<std::string> explain(std::string_view source, const CompileOptions &options,
                            std::string_view until, std::string_view way) {
  ForkGate gate;
  if (options.device == DeviceKind::CUDA)
    return explainForGPU(source, options, until, way);
  if (!way.empty())
    return Status{StatusCode::InvalidArgument,
                  formatv("way: expected none on the CPU, got '{0}'", way).str(), ""};
  // The rooms of the CPU after the third have names that nobody gave.
  std::optional<Room> last = symbolizeRoom(until);
  if (!last || *last > Room::Online)
    return refuseDoor(until, listRooms(RoomDevice::CPU, getInfo(Room::Online).number));
  return explainForHost(source, options, until);
}

} // namespace attn
