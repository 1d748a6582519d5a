//===- Bundle.cpp - one function for several kinds of GPU -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Bundle.h"
#include "lib/Plan/Plan.h"
#include "lib/Runtime/Module.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace attn {

static constexpr int64_t kBundleVersion = 1;

static Status makeInvalid(const Twine &message) {
  return {StatusCode::InvalidKernel, message.str(), ""};
}

Result<std::string> writeBundle(std::span<const KernelImage> images) {
  json::Array list;
  for (const KernelImage &image : images) {
    Expected<json::Value> plan = json::parse(image.plan);
    if (!plan)
      return makeInvalid("expected a plan in JSON: " + toString(plan.takeError()));
    list.push_back(json::Object{{"plan", std::move(*plan)}, {"ptx", image.ptx}});
  }
  json::Value bundle = json::Object{{"version", kBundleVersion}, {"images", std::move(list)}};
  return formatv("{0:2}\n", bundle).str();
}

Result<std::vector<KernelImage>> readBundle(std::string_view text) {
  Expected<json::Value> bundle = json::parse(text);
  if (!bundle)
    return makeInvalid("expected a bundle in JSON: " + toString(bundle.takeError()));
  const json::Object *object = bundle->getAsObject();
  std::optional<int64_t> version = object ? object->getInteger("version") : std::nullopt;
  if (version != kBundleVersion)
    return makeInvalid("expected a bundle of version " + Twine(kBundleVersion) + ", got " +
                       (version ? "version " + std::to_string(*version) : "none"));
  const json::Array *list = object->getArray("images");
  if (!list || list->empty())
    return makeInvalid("expected images in the bundle, got none");
  std::vector<KernelImage> images;
  for (const json::Value &entry : *list) {
    const json::Object *image = entry.getAsObject();
    const json::Value *plan = image ? image->get("plan") : nullptr;
    std::optional<StringRef> ptx = image ? image->getString("ptx") : std::nullopt;
    if (!plan || !ptx)
      return makeInvalid("expected plan and ptx in image " + Twine(images.size()) +
                         " of the bundle");
    images.push_back({ptx->str(), formatv("{0:2}\n", *plan).str(), ""});
  }
  return images;
}

/// How close code is to a device that runs it: of its own capability, of its family, or of all
/// GPUs from a number on.
static std::pair<int, unsigned> getRank(StringRef target) {
  unsigned number = 0;
  target.consume_front("sm_");
  target.consumeInteger(10, number);
  return {target == "a" ? 2 : target == "f" ? 1 : 0, number};
}

Result<const KernelImage *> chooseImage(std::span<const KernelImage> images,
                                        const DeviceInfo &device) {
  const KernelImage *best = nullptr;
  std::pair<int, unsigned> rank;
  SmallVector<std::string> targets;
  for (const KernelImage &image : images) {
    Expected<FunctionPlan> plan = readPlan(image.plan);
    if (!plan)
      return makeInvalid(toString(plan.takeError()));
    if (plan->kernels.empty())
      return makeInvalid("expected a plan with a kernel");
    const std::string &target = targets.emplace_back(plan->kernels.front().target);
    Status status = checkTarget(target, device);
    if (status.code == StatusCode::InvalidKernel)
      return status;
    if (!status.ok() || (best && getRank(target) <= rank))
      continue;
    best = &image;
    rank = getRank(target);
  }
  if (best)
    return best;
  if (targets.empty())
    return makeInvalid("expected images for the device, got none");
  return Status{StatusCode::UnsupportedDevice,
                formatv("expected code that a device of compute capability {0}.{1} runs ({2}), "
                        "got that for {3}",
                        device.major, device.minor, device.name, join(targets, ", "))
                    .str(),
                "compile for the device too: attn-translate --target"};
}

Result<Kernel> loadBest(std::span<const KernelImage> images, const LoadOptions &options) {
  Result<DeviceContext> context = DeviceContext::open(options.device);
  if (!context)
    return context.takeStatus();
  Result<const KernelImage *> image = chooseImage(images, context->getInfo());
  if (!image)
    return image.takeStatus();
  return Kernel::load(**image, options);
}

} // namespace attn
