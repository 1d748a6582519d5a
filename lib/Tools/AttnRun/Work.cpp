//===- Work.cpp - which pairs of rows and keys count as work ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Variants without tensors keep an interval of each row's keys, so that a row costs one
// intersection however many keys there are.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Work.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/AttnVariants.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir;

namespace attn {

namespace {
struct Interval {
  int64_t begin, end;
};
} // namespace

/// The keys that a variant lets a row keep, of which some may not be there. Nothing where it is no
/// interval that the row alone decides.
static std::optional<Interval> findKept(Attribute variant, int64_t row, int64_t shift,
                                        int64_t keys) {
  auto align = [&](Alignment alignment) {
    return alignment == Alignment::BottomRight ? row + shift : row;
  };
  if (isScoreVariant(variant) || isa<DropoutAttr>(variant))
    return Interval{0, keys};
  if (auto causal = dyn_cast<CausalAttr>(variant))
    return Interval{0, align(causal.getAlignment()) + 1};
  if (auto window = dyn_cast<WindowAttr>(variant)) {
    int64_t own = align(window.getAlignment());
    return Interval{window.getLeft() < 0 ? 0 : own - window.getLeft(),
                    window.getRight() < 0 ? keys : own + window.getRight() + 1};
  }
  if (auto prefix = dyn_cast<PrefixAttr>(variant); prefix && prefix.getLength() >= 0)
    return Interval{0, std::max(prefix.getLength(), align(prefix.getAlignment()) + 1)};
  if (auto chunked = dyn_cast<ChunkedAttr>(variant)) {
    int64_t size = chunked.getSize(),
            chunk = llvm::divideFloorSigned(align(chunked.getAlignment()), size);
    return Interval{chunk * size, (chunk + 1) * size};
  }
  return std::nullopt;
}

std::optional<double> countKeptPairs(func::FuncOp function, int64_t rows, int64_t keys) {
  SmallVector<ScoredOpInterface> found;
  function.walk([&](ScoredOpInterface op) { found.push_back(op); });
  if (found.size() != 1 || !found.front().getMask().empty() || !found.front().getOrigin().empty())
    return std::nullopt;
  ArrayRef<Attribute> variants;
  if (ArrayAttr attribute = found.front().getVariantsAttr())
    variants = attribute.getValue();
  double pairs = 0;
  for (int64_t row = 0; row < rows; ++row) {
    Interval kept = {0, keys};
    for (Attribute variant : variants) {
      std::optional<Interval> own = findKept(variant, row, keys - rows, keys);
      if (!own)
        return std::nullopt;
      kept = {std::max(kept.begin, own->begin), std::min(kept.end, own->end)};
    }
    pairs += double(std::max<int64_t>(kept.end - kept.begin, 0));
  }
  return pairs;
}

} // namespace attn
