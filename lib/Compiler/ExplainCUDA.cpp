//===- ExplainCUDA.cpp - what becomes of a source on a GPU ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "dialects/Plan/IR/PlanFactors.h"
#include "lib/Compiler/Assembled.h"
#include "lib/Compiler/Explain.h"
#include "lib/Rooms/Rooms.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// Floors
//===----------------------------------------------------------------------------------------===//

/// The least that an attention can take, for any code: its operations and the units that do them.
static void printFloors(raw_ostream &os, AttentionOp op) {
  auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  if (!schedule)
    return;
  int64_t d = op.getHeadDim(), dv = op.getValueDim();
  int64_t m = schedule->blockM, n = schedule->blockN;
  Factors factors = getFactors(op.getQuery().getType().getElementTypeBitWidth());
  int64_t bytes = factors.bytes * factors.parts, flops = 2 * (d + dv) * factors.countProducts();
  const Costs &costs = plan::getMachine(op).costs;
  os << formatv(
      "// work        {0} FLOPs and 1 exp for each pair of a row and a key; {1} bytes for "
      "each row, {2} for each key\n",
      flops, bytes * (d + dv), bytes * (d + dv));
  os << formatv(
      "// floors      a tile of {0} x {1} on one SM: products {2} cycles, exponentials {3} "
      "cycles, {4} bytes of keys and values\n",
      m, n, m * n * flops / int64_t(costs.tensorFlops), m * n / int64_t(costs.exps),
      bytes * n * (d + dv));
}

//===----------------------------------------------------------------------------------------===//
// The PTX
//===----------------------------------------------------------------------------------------===//

/// How often instructions occur in the text, by what they start with; loops count once.
static void printInstructions(raw_ostream &os, StringRef ptx) {
  static constexpr std::pair<StringLiteral, StringLiteral> kinds[] = {
      {"wgmma.mma_async", "wgmma"},  {"cp.async.bulk.tensor", "bulk copies"},
      {"ex2.approx", "ex2"},         {"mbarrier.try_wait", "barrier waits"},
      {"shfl.sync", "shuffles"},     {"setmaxnreg", "setmaxnreg"},
      {"ld.global", "global loads"}, {"st.global", "global stores"},
      {"ld.local", "local loads"}};
  size_t counts[std::size(kinds)] = {}, total = 0;
  SmallVector<StringRef> lines;
  ptx.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    line = line.ltrim(" \t{");
    if (line.starts_with("@"))
      line = line.split(' ').second.ltrim();
    total += line.contains(';') && !line.starts_with(".");
    for (auto [count, kind] : zip_equal(counts, kinds))
      count += line.starts_with(kind.first);
  }
  os << "// ptx         " << total << " instructions";
  for (auto [count, kind] : zip_equal(counts, kinds))
    if (count)
      os << ", " << count << ' ' << kind.second;
  os << '\n';
}

/// Which calls a kernel is for, where others have another.
static void printRange(raw_ostream &os, const ExtentRange &range) {
  if (range.size.argument == SizeFactor::kParts)
    os << "the number of parts";
  else if (range.size.argument == SizeFactor::kMemoryRate)
    os << "the rate of memory in GB/s";
  else
    os << formatv("dimension {0} of argument {1}", range.size.dim, range.size.argument);
  if (!(range.per == SizeFactor()))
    os << formatv(" by dimension {0} of argument {1}", range.per.dim, range.per.argument);
  if (range.most == std::numeric_limits<int64_t>::max())
    os << " is at least " << range.least;
  else
    os << formatv(" is {0} to {1}", range.least, range.most);
}

/// The calls that take a way; those of most calls come last.
static void printCalls(raw_ostream &os, StringRef name, const WayConditions &when) {
  os << "// calls       " << name;
  if (when.empty())
    os << " otherwise";
  for (auto [index, ranges] : enumerate(when)) {
    os << (index ? "; or" : " where");
    for (auto [place, range] : enumerate(ranges)) {
      os << (place ? " and " : " ");
      printRange(os, range);
    }
  }
  os << '\n';
}

/// The ways in the order in which calls try them.
static void printWays(raw_ostream &os, ArrayRef<WayPlan> ways) {
  for (const WayPlan &way : ways.size() > 1 ? ways : ArrayRef<WayPlan>())
    printCalls(os, way.name.empty() ? "most" : way.name, way.when);
}

static Status refuseWay(std::string_view way, ArrayRef<WayPlan> ways) {
  std::string names = join(map_range(ways,
                                     [](const WayPlan &each) {
                                       return each.name.empty() ? std::string("''") : each.name;
                                     }),
                           ", ");
  return {StatusCode::InvalidArgument, formatv("way: expected {0}, got '{1}'", names, way).str(),
          ""};
}

/// Of blocks that stay, how many there are.
static void printStaying(raw_ostream &os, const KernelPlan &plan) {
  for (const SizeFactor &factor : plan.grid[0])
    if (factor.argument == SizeFactor::kMultiprocessors && factor.less > 0)
      os << formatv(
          "// reserve     {0} multiprocessors that blocks of {1} leave to other kernels\n",
          factor.less, plan.name);
}

static void printPlans(raw_ostream &os, ArrayRef<KernelPlan> plans) {
  for (const KernelPlan &plan : plans) {
    auto numMaps = count_if(plan.parameters, [](const KernelParameter &parameter) {
      return parameter.kind == KernelParameter::Kind::TensorMap;
    });
    os << formatv(
        "// kernel      {0} for {1}: {2} threads, {3} bytes of shared memory, {4} parameters, "
        "{5} of them tensor maps\n",
        plan.name, plan.target, plan.block[0] * plan.block[1] * plan.block[2],
        plan.dynamicSharedBytes, plan.parameters.size(), numMaps);
    printStaying(os, plan);
    if (!plan.scratch.empty())
      os << formatv(
          "// scratch     {0} tensors that {1} leaves for later kernels, in memory of each "
          "launch\n",
          plan.scratch.size(), plan.name);
  }
}

//===----------------------------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------------------------===//

Result<std::string> explainForGPU(std::string_view source, const CompileOptions &options,
                                  std::string_view until, std::string_view way) {
  std::optional<Room> last = symbolizeRoom(until);
  if (!last || !getInfo(*last).isOnTheWayTo(RoomDevice::CUDA))
    return refuseDoor(until, listRooms(RoomDevice::CUDA));
  bool isPTX = last == Room::PTX;
  std::vector<PassRemark> remarks;
  std::string text, floors, ir;
  raw_string_ostream os(text), floorStream(floors), irStream(ir);
  auto observe = [&](StringRef room, mlir::ModuleOp module, ArrayRef<PassRemark> said) {
    // Schedules are in the first room, and only there is an attention whole.
    if (room == getInfo(Room::Problem).name)
      module.walk([&](AttentionOp op) {
        if (plan::getWay(op->getParentOfType<mlir::func::FuncOp>()).name == way)
          printFloors(floorStream, op);
      });
    if (room != getInfo(isPTX ? Room::Thread : *last).name)
      return;
    remarks = said;
    if (!isPTX)
      module.print(irStream);
  };
  Result<EmittedImage> emitted =
      emitImage(source, options, {EmitRequest::What::Way, std::string(way), observe});
  if (!emitted)
    return emitted.takeStatus();
  if (emitted->plan.kernels.empty())
    return refuseWay(way, emitted->ways);

  os << "// device      cuda\n";
  for (const PassRemark &remark : remarks)
    printRemark(os, remark);
  printWays(os, emitted->ways);
  os << floors;
  printPlans(os, emitted->plan.kernels);
  printInstructions(os, emitted->image.ptx);
  os << describeAssembled(emitted->image, options);
  os << formatv("// compile     {0:f1} ms (passes {1:f1}, LLVM {2:f1})\n",
                emitted->passesMs + emitted->llvmMs, emitted->passesMs, emitted->llvmMs);
  os << (isPTX ? emitted->image.ptx : ir);
  return text;
}

} // namespace attn
