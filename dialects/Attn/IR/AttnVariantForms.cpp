//===- AttnVariantForms.cpp - how the variants are written ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// AttnAttrs.td generates parsers, and no text that a person could follow. A test compares names,
// numbers of parameters and sentences with it.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariantForms.h"

using namespace attn;

static constexpr VariantForm kForms[] = {
    {"causal", "<top_left|bottom_right>",
     "keep n <= m' (m' = m, or m + N - M when aligned bottom_right)"},
    {"window", "<LEFT, RIGHT, top_left|bottom_right>",
     "keep m' - left <= n <= m' + right; -1 means unbounded on that side"},
    {"prefix", "<LENGTH, top_left|bottom_right>",
     "keep n < length or n <= m': a prefix that all rows see, then causal"},
    {"chunked", "<SIZE, top_left|bottom_right>", "keep floor(n / size) == floor(m' / size)"},
    {"document", "", "keep ids_q[b, m] == ids_k[b, n]; captures ids_q (B, M) and ids_k (B, N)"},
    {"key_length", "", "keep n < lengths[b]; captures lengths (B)"},
    {"softcap", "<CAP>", "score = cap * tanh(s / cap)"},
    {"alibi", "<top_left|bottom_right>", "score = s - slopes[h] * |m' - n|; captures slopes (H)"},
    {"relative_bias", "<OFFSET, top_left|bottom_right>",
     "score = s + bias[h, clamp(m' - n + offset, 0, R - 1)]; captures bias (H, R)"},
    {"dropout", "<P>", "factor = 0 with probability p, else 1 / (1 - p); captures seed (1)"},
    {"positions", "<own|origin|table, own|origin|table, own|origin|table, own|origin|table>",
     "b, h, m and n, M and N are those of a whole; captures origins (1) or tables, then total (2)"},
};

llvm::ArrayRef<VariantForm> attn::getVariantForms() { return kForms; }

std::string attn::describeVariant(llvm::StringRef name) {
  if (name == "schedule")
    return "";
  std::string nearest, all;
  unsigned least = 3;
  for (const VariantForm &form : kForms) {
    if (form.name == name)
      return "it is written " + form.getText() + ": " + form.sentence.str();
    if (unsigned distance = name.edit_distance(form.name, /*AllowReplacements=*/true, least);
        distance < least)
      least = distance, nearest = "the nearest is " + form.getText() + "; ";
    all += (all.empty() ? "" : ", ") + form.name.str();
  }
  return nearest + "variants are " + all;
}
