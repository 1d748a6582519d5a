//===- HostInfo.cpp - the processor that kernels are compiled for -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/HostInfo.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/Threading.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"
#include <algorithm>
#include <memory>

using namespace llvm;

namespace attn {

/// The processors' time that the control group grants, in whole cores; containers limit time while
/// showing all cores.
static unsigned getCoreQuota() {
  auto file = MemoryBuffer::getFileAsStream("/sys/fs/cgroup/cpu.max");
  if (!file)
    return ~0u;
  auto [quota, period] = (*file)->getBuffer().trim().split(' ');
  uint64_t granted = 0, length = 0;
  if (quota.getAsInteger(10, granted) || period.getAsInteger(10, length) || length == 0)
    return ~0u;
  return std::clamp<uint64_t>((granted + length - 1) / length, 1, ~0u);
}

/// The limit of threads for OpenMP's programs, which schedulers of jobs and data loaders set; "4,2"
/// also limits loops inside loops.
static unsigned getOpenMPLimit() {
  std::optional<std::string> text = sys::Process::GetEnv("OMP_NUM_THREADS");
  unsigned count = 0;
  if (!text || StringRef(*text).split(',').first.trim().getAsInteger(10, count) || count == 0)
    return ~0u;
  return count;
}

static unsigned countThreads() {
  // Both respect the affinity mask of the process.
  int cores = get_physical_cores();
  unsigned threads = hardware_concurrency().compute_thread_count();
  unsigned count = cores > 0 ? std::min<unsigned>(cores, threads) : threads;
  return std::max(1u, std::min({count, getCoreQuota(), getOpenMPLimit()}));
}

static std::string getHostFeatures() {
  SubtargetFeatures features;
  for (const auto &[name, isPresent] : sys::getHostCPUFeatures())
    features.AddFeature(name, isPresent);
  return features.getString();
}

static Expected<std::unique_ptr<MCSubtargetInfo>> getSubtarget(const HostInfo &info) {
  Triple triple(info.triple);
  std::string reason;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, reason);
  if (!target)
    return createStringError("expected a target for " + info.triple + ", got: " + reason);
  // LLVM only warns, on stderr, about a name it does not know; ask first.
  std::unique_ptr<MCSubtargetInfo> generic(target->createMCSubtargetInfo(triple, "", ""));
  if (!generic || !generic->isCPUStringValid(info.cpu))
    return createStringError("expected a CPU that LLVM knows for " + info.triple + ", got '" +
                             info.cpu + "'");
  return std::unique_ptr<MCSubtargetInfo>(
      target->createMCSubtargetInfo(triple, info.cpu, info.features));
}

static Error describeVectors(HostInfo &info) {
  Expected<std::unique_ptr<MCSubtargetInfo>> subtarget = getSubtarget(info);
  if (!subtarget)
    return subtarget.takeError();
  if (!Triple(info.triple).isX86())
    return Error::success();
  auto has = [&](StringRef feature) { return (*subtarget)->checkFeatures(feature); };
  info.f32Lanes = has("+avx512f") ? 16 : has("+avx2") && has("+fma") ? 8 : 4;
  info.hasBF16Dot = has("+avx512bf16");
  info.hasF16Convert = has("+f16c") || has("+avx512f");
  return Error::success();
}

static Expected<HostInfo> detectHost() {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  InitializeNativeTargetAsmParser();
  HostInfo info;
  info.triple = sys::getProcessTriple();
  info.cpu = sys::getHostCPUName().str();
  info.features = getHostFeatures();
  info.numThreads = countThreads();
  if (Error error = describeVectors(info))
    return std::move(error);
  return info;
}

/// The instructions whose absence a process only notices by being killed.
static Error checkRunsHere(const HostInfo &info, const HostInfo &host) {
  if (!Triple(info.triple).isX86())
    return Error::success();
  Expected<std::unique_ptr<MCSubtargetInfo>> wanted = getSubtarget(info),
                                             present = getSubtarget(host);
  if (!wanted || !present)
    return joinErrors(wanted.takeError(), present.takeError());
  for (StringRef feature : {"avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512vl",
                            "avx512bf16", "avx512fp16", "avx512vnni", "amx-tile"}) {
    std::string flag = ("+" + feature).str();
    if ((*wanted)->checkFeatures(flag) && !(*present)->checkFeatures(flag))
      return createStringError("expected a CPU that this machine (" + host.cpu +
                               ") can run, got '" + info.cpu + "', which needs " + feature);
  }
  return Error::success();
}

Expected<HostInfo> getHostInfo(const HostOverride &overrides) {
  static Expected<HostInfo> &detected = *new Expected<HostInfo>(detectHost());
  if (!detected)
    return createStringError("expected an LLVM target for this machine, got none");
  HostInfo info = *detected;
  if (overrides.numThreads)
    info.numThreads = std::max(1u, *overrides.numThreads);
  if (!overrides.cpu && !overrides.features)
    return info;
  if (overrides.cpu) {
    info.cpu = *overrides.cpu;
    info.features.clear();
  }
  if (overrides.features)
    info.features += (info.features.empty() ? "" : ",") + *overrides.features;
  if (Error error = describeVectors(info))
    return std::move(error);
  if (!overrides.isForElsewhere)
    if (Error error = checkRunsHere(info, *detected))
      return std::move(error);
  return info;
}

} // namespace attn
