//===- Bundle.h - one function for several kinds of GPU ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A program that is compiled before it knows its GPU takes code for several kinds along:
//
//   attn-translate causal.mlir --target=sm_80,sm_90a,sm_120a --to-ptx -o causal.bundle
//
//   attn::Result<std::vector<attn::KernelImage>> images = attn::readBundle(text);
//   if (!images)
//     report(images.getStatus().str());
//   attn::Result<attn::Kernel> kernel = attn::loadBest(*images);
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_BUNDLE_H
#define ATTN_BUNDLE_H

#include "attn/Runtime.h"
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The images as one text, JSON: {"version": 1, "images": [{"plan": {...}, "ptx": "..."}]}. Without
/// machine code, which is of one device. Errors: InvalidKernel where a plan is none.
Result<std::string> writeBundle(std::span<const KernelImage> images);

/// The images of a text that writeBundle wrote. Errors: InvalidKernel.
Result<std::vector<KernelImage>> readBundle(std::string_view text);

/// The image that is best for a device among those that it runs: code of its own capability
/// (sm_90a), then of its family (sm_90f), then the newest for all GPUs from some kind on (sm_89
/// before sm_80). Errors: UnsupportedDevice, which names the kinds there are; InvalidKernel.
Result<const KernelImage *> chooseImage(std::span<const KernelImage> images,
                                        const DeviceInfo &device);

/// Loads that image. Errors: also those of Kernel::load.
Result<Kernel> loadBest(std::span<const KernelImage> images, const LoadOptions &options = {});

} // namespace attn

#endif // ATTN_BUNDLE_H
