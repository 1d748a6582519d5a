//===- Spec.cpp - the common attentions as IR text ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn {

static std::string getTensor(StringRef shape, int64_t columns, StringRef type) {
  return formatv("tensor<{0}{1}x{2}>", shape, columns, type);
}

std::string getSource(const AttentionSpec &spec) {
  StringRef type = getName(spec.type);
  int64_t valueDim = spec.valueDim ? spec.valueDim : spec.headDim;
  std::string q = getTensor("?x?x?x", spec.headDim, type);
  std::string v = getTensor("?x?x?x", valueDim, type);

  SmallVector<std::string> variants;
  if (spec.causal != Causal::No)
    variants.push_back(
        formatv("#attn.causal<{0}>", spec.causal == Causal::TopLeft ? "top_left" : "bottom_right"));
  if (spec.windowLeft != -1 || spec.windowRight != -1)
    variants.push_back(
        formatv("#attn.window<{0}, {1}, bottom_right>", spec.windowLeft, spec.windowRight));

  std::string text = formatv("func.func @attention(%query: {0}, %key: {0}, %value: {1}", q, v);
  if (spec.hasScale)
    text += ", %scale: f32";
  if (spec.hasSink)
    text += ", %sink: tensor<?xf32>";
  std::string results = v;
  if (spec.returnsLse)
    results += ", tensor<?x?x?xf32>";
  text += ") -> (" + results + ") {\n  %output" + (spec.returnsLse ? ", %lse" : "") +
          " = attn.attention %query, %key, %value";
  if (!variants.empty())
    text += " variants [" + join(variants, ", ") + "]";
  if (spec.hasScale)
    text += " scale(%scale)";
  if (spec.hasSink)
    text += " sink(%sink : tensor<?xf32>)";
  text += formatv("\n      : {0}, {0}, {1} -> {2}\n", q, v, results);
  text += std::string("  return %output") + (spec.returnsLse ? ", %lse" : "") + " : " + results +
          "\n}\n";
  return text;
}

} // namespace attn
