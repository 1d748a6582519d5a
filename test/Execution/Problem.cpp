//===- Problem.cpp - attentions to test -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Problem.h"
#include "lib/Support/Random.h"
#include "test/Execution/LargeScores.h"
#include "test/Execution/RaggedSource.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace attn::test {

const Capture kQueryIds = {Capture::QueryIds, "%ids_q", "tensor<?x?xi32>"};
const Capture kKeyIds = {Capture::KeyIds, "%ids_k", "tensor<?x?xi32>"};
const Capture kLengths = {Capture::Lengths, "%lengths", "tensor<?xi32>"};
const Capture kSlopes = {Capture::Slopes, "%slopes", "tensor<?xf32>"};
const Capture kBias = {Capture::Bias, "%bias", "tensor<?x?xbf16>"};
const Capture kSink = {Capture::Sink, "%sink", "tensor<?xf32>"};
const Capture kSeed = {Capture::Seed, "%seed", "tensor<1xi64>"};
const Capture kScale = {Capture::Scale, "%factor", "f32"};

const char *const kSortedIds = "  %sorted_q = attn.assume nondecreasing %ids_q : tensor<?x?xi32>\n"
                               "  %sorted_k = attn.assume nondecreasing %ids_k : tensor<?x?xi32>\n";

const Variant kFull = {"Full", ""};
const Variant kCausal = {"CausalBottomRight", "variants [#attn.causal<bottom_right>]"};

std::vector<Variant> getVariants() {
  return {
      kFull,
      {"CausalTopLeft", "variants [#attn.causal<top_left>]"},
      kCausal,
      {"Window", "variants [#attn.window<100, 30, bottom_right>]"},
      {"WindowLeftOnly", "variants [#attn.window<64, -1, top_left>]"},
      {"CausalWindow", "variants [#attn.causal<bottom_right>, #attn.window<70, -1, bottom_right>]"},
      {"Prefix", "variants [#attn.prefix<90, top_left>]"},
      {"PrefixCaptured",
       "variants [#attn.prefix<-1, bottom_right>] captures(%lengths : tensor<?xi32>)",
       {kLengths}},
      {"Chunked", "variants [#attn.chunked<48, bottom_right>]"},
      {"ChunkedCausal", "variants [#attn.chunked<100, top_left>, #attn.causal<top_left>]"},
      {"KeyLength", "variants [#attn.key_length] captures(%lengths : tensor<?xi32>)", {kLengths}},
      {"Document",
       "variants [#attn.document] captures(%sorted_q, %sorted_k : tensor<?x?xi32>, "
       "tensor<?x?xi32>)",
       {kQueryIds, kKeyIds},
       kSortedIds},
      {"DocumentUnknown",
       "variants [#attn.document] captures(%ids_q, %ids_k : tensor<?x?xi32>, tensor<?x?xi32>)",
       {kQueryIds, kKeyIds}},
      {"DocumentCausal",
       "variants [#attn.document, #attn.causal<bottom_right>] captures(%sorted_q, %sorted_k : "
       "tensor<?x?xi32>, tensor<?x?xi32>)",
       {kQueryIds, kKeyIds},
       kSortedIds},
      {"Softcap", "variants [#attn.softcap<2.0 : f32>]"},
      {"SoftcapCausal", "variants [#attn.softcap<30.0 : f32>, #attn.causal<bottom_right>]"},
      {"Alibi",
       "variants [#attn.alibi<bottom_right>] captures(%slopes : tensor<?xf32>)",
       {kSlopes}},
      {"AlibiCausal",
       "variants [#attn.alibi<top_left>, #attn.causal<top_left>] captures(%slopes : tensor<?xf32>)",
       {kSlopes}},
      {"RelativeBias",
       "variants [#attn.relative_bias<40, bottom_right>] captures(%bias : tensor<?x?xbf16>)",
       {kBias}},
      {"AllScores",
       "variants [#attn.softcap<5.0 : f32>, #attn.alibi<bottom_right>, #attn.relative_bias<40, "
       "top_left>, #attn.causal<bottom_right>] captures(%slopes, %bias : tensor<?xf32>, "
       "tensor<?x?xbf16>)",
       {kSlopes, kBias}},
      {"Dropout", "variants [#attn.dropout<0.25>] captures(%seed : tensor<1xi64>)", {kSeed}},
      {"DropoutCausal",
       "variants [#attn.softcap<5.0 : f32>, #attn.causal<bottom_right>, #attn.dropout<0.5>] "
       "captures(%seed : tensor<1xi64>)",
       {kSeed}},
      {"Sink", "sink(%sink : tensor<?xf32>)", {kSink}},
      {"SinkCausal", "variants [#attn.causal<bottom_right>] sink(%sink : tensor<?xf32>)", {kSink}},
      {"KeepsNothing",
       "mask(%b, %h, %m, %n) {\n    %no = arith.constant false\n    attn.yield %no : i1\n  }"},
      {"SinkKeepsNothing",
       "sink(%sink : tensor<?xf32>) mask(%b, %h, %m, %n) {\n    %no = arith.constant false\n"
       "    attn.yield %no : i1\n  }",
       {kSink}},
      {"SinksAndWindow",
       "mask(%b, %h, %m, %n) {\n"
       "    %c4 = arith.constant 4 : index\n    %c60 = arith.constant 60 : index\n"
       "    %first = arith.cmpi slt, %n, %c4 : index\n    %low = arith.subi %m, %c60 : index\n"
       "    %near = arith.cmpi sge, %n, %low : index\n    %some = arith.ori %first, %near : i1\n"
       "    %past = arith.cmpi sle, %n, %m : index\n    %keep = arith.andi %some, %past : i1\n"
       "    attn.yield %keep : i1\n  }"},
      {"Undecidable", "mask(%b, %h, %m, %n) {\n"
                      "    %c3 = arith.constant 3 : index\n    %c0 = arith.constant 0 : index\n"
                      "    %mn = arith.muli %m, %n : index\n    %r = arith.remui %mn, %c3 : index\n"
                      "    %keep = arith.cmpi ne, %r, %c0 : index\n    attn.yield %keep : i1\n  }"},
      {"ScoreDropsAll",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %ninf = arith.constant 0xFF800000 : f32\n    %c1 = arith.constant 1 : index\n"
       "    %drop = arith.cmpi eq, %m, %c1 : index\n"
       "    %t = arith.select %drop, %ninf, %s : f32\n    attn.yield %t : f32\n  }"},
      {"ScoreMath",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %c = arith.constant 0.25 : f32\n    %e = math.exp %s : f32\n"
       "    %l = math.log1p %e : f32\n"
       "    %i = arith.index_cast %n : index to i32\n    %f = arith.sitofp %i : i32 to f32\n"
       "    %x = math.sin %f : f32\n    %y = arith.mulf %x, %c : f32\n"
       "    %t = arith.addf %l, %y : f32\n    attn.yield %t : f32\n  }"},
      {"ScoreFunctions", "score(%s, %b, %h, %m, %n) {\n"
                         "    %c1 = arith.constant 1.0 : f32\n    %e = math.erf %s : f32\n"
                         "    %a = math.absf %s : f32\n    %d = arith.addf %a, %c1 : f32\n"
                         "    %p = math.powf %d, %e : f32\n    %i = math.atan %s : f32\n"
                         "    %t = math.tanh %i : f32\n    %r = math.sqrt %d : f32\n"
                         "    %x = arith.addf %p, %t : f32\n    %y = arith.subf %x, %r : f32\n"
                         "    attn.yield %y : f32\n  }"},
  };
}

static std::vector<Variant> getUserMasks() {
  return {
      {"EveryThird", "mask(%b, %h, %m, %n) {\n"
                     "    %c3 = arith.constant 3 : index\n    %c1 = arith.constant 1 : index\n"
                     "    %r = arith.remui %n, %c3 : index\n"
                     "    %keep = arith.cmpi eq, %r, %c1 : index\n    attn.yield %keep : i1\n  }"},
      {"Nested",
       "mask(%b, %h, %m, %n) {\n"
       "    %c20 = arith.constant 20 : index\n    %c90 = arith.constant 90 : index\n"
       "    %c110 = arith.constant 110 : index\n    %first = arith.cmpi slt, %n, %c20 : index\n"
       "    %from = arith.cmpi sge, %n, %c90 : index\n"
       "    %to = arith.cmpi slt, %n, %c110 : index\n"
       "    %second = arith.andi %from, %to : i1\n    %some = arith.ori %first, %second : i1\n"
       "    %is = arith.cmpi eq, %n, %m : index\n    %keep = arith.xori %some, %is : i1\n"
       "    attn.yield %keep : i1\n  }"},
      {"ByHead", "mask(%b, %h, %m, %n) {\n"
                 "    %c60 = arith.constant 60 : index\n    %c9 = arith.constant 9 : index\n"
                 "    %s = arith.muli %h, %c9 : index\n    %e = arith.addi %s, %c60 : index\n"
                 "    %from = arith.cmpi sge, %n, %s : index\n"
                 "    %to = arith.cmpi slt, %n, %e : index\n"
                 "    %keep = arith.andi %from, %to : i1\n    attn.yield %keep : i1\n  }"},
      {"ByTensor",
       "mask(%b, %h, %m, %n) {\n"
       "    %c2 = arith.constant 2 : i32\n"
       "    %id = tensor.extract %ids_k[%b, %n] : tensor<?x?xi32>\n"
       "    %keep = arith.cmpi ne, %id, %c2 : i32\n    attn.yield %keep : i1\n  }",
       {kKeyIds}},
      {"ScoreDropsKeys",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %ninf = arith.constant 0xFF800000 : f32\n    %c40 = arith.constant 40 : index\n"
       "    %drop = arith.cmpi sge, %n, %c40 : index\n"
       "    %t = arith.select %drop, %ninf, %s : f32\n    attn.yield %t : f32\n  }"},
      {"NarrowPositions",
       "mask(%b, %h, %m, %n) {\n"
       "    %i = arith.index_cast %m : index to i8\n    %j = arith.index_cast %n : index to i8\n"
       "    %past = arith.cmpi sle, %j, %i : i8\n    %w = arith.index_cast %j : i8 to index\n"
       "    %same = arith.cmpi eq, %w, %n : index\n"
       "    %keep = arith.ori %past, %same : i1\n    attn.yield %keep : i1\n  }"},
  };
}

std::vector<Variant> getOwnIds() {
  auto make = [](const char *name, const std::string &ids, const std::string &more,
                 std::string prologue) {
    std::string text = "mask(%b, %h, %m, %n) {\n"
                       "    %i = tensor.extract " +
                       ids +
                       "[%b, %m] : tensor<?x?xi32>\n"
                       "    %j = tensor.extract " +
                       ids +
                       "[%b, %n] : tensor<?x?xi32>\n"
                       "    %same = arith.cmpi eq, %i, %j : i32\n" +
                       more + "    attn.yield %keep : i1\n  }";
    return Variant{name, text, {kKeyIds}, std::move(prologue)};
  };
  std::string sorted = "  %sorted_k = attn.assume nondecreasing %ids_k : tensor<?x?xi32>\n";
  std::string all = "    %yes = arith.constant true\n    %keep = arith.andi %same, %yes : i1\n";
  std::string past = "    %past = arith.cmpi sle, %n, %m : index\n"
                     "    %keep = arith.andi %same, %past : i1\n";
  return {make("Unknown", "%ids_k", all, ""), make("UnknownCausal", "%ids_k", past, ""),
          make("Sorted", "%sorted_k", all, sorted),
          make("SortedCausal", "%sorted_k", past, sorted)};
}

/// A score that adds what `read` reads as %x, an f32.
static std::string makeAddition(const std::string &read) {
  return "score(%s, %b, %h, %m, %n) {\n" + read +
         "    %t = arith.addf %s, %x : f32\n    attn.yield %t : f32\n  }";
}

static Variant makeTrained(const char *name, Capture capture, const char *indices) {
  return {name,
          makeAddition("    %x = tensor.extract " + std::string(capture.name) + "[" + indices +
                       "] : " + capture.type + "\n"),
          {capture}};
}

std::vector<Variant> getTrainedScores() {
  auto floats = [](std::string type, const char *dims) {
    return Capture{Capture::Floats, "%x0", std::move(type), dims};
  };
  Capture table = {Capture::Floats, "%table", "tensor<?x?xf32>", "HT"};
  Capture buckets = {Capture::Buckets, "%buckets", "tensor<?x?xi32>", "MN"};
  std::vector<Variant> variants = {
      makeTrained("One", floats("tensor<f32>", ""), ""),
      makeTrained("PerHead", floats("tensor<?xf32>", "H"), "%h"),
      makeTrained("PerRow", floats("tensor<?x?xf32>", "HM"), "%h, %m"),
      makeTrained("PerKey", floats("tensor<?x?xf32>", "BN"), "%b, %n"),
      makeTrained("PerKeyOfAll", floats("tensor<?xf32>", "N"), "%n"),
      makeTrained("PerElement", floats("tensor<?x?x?x?xf32>", "BHMN"), "%b, %h, %m, %n"),
      makeTrained("PerElementOfHeads", floats("tensor<?x?x?xf32>", "HMN"), "%h, %m, %n"),
      makeTrained("PerElementOfAll", floats("tensor<?x?xf32>", "MN"), "%m, %n"),
      makeTrained("PerKeyAndRow", floats("tensor<?x?x?xf32>", "BNM"), "%b, %n, %m"),
      {"Bucket",
       makeAddition("    %i = tensor.extract %buckets[%m, %n] : tensor<?x?xi32>\n"
                    "    %j = arith.index_cast %i : i32 to index\n"
                    "    %x = tensor.extract %table[%h, %j] : tensor<?x?xf32>\n"),
       {table, buckets}},
      // Beyond both ends of the table: by distance, by what a tensor holds, and by the head.
      {"DistanceOutside",
       makeAddition("    %d = arith.subi %m, %n : index\n"
                    "    %x = tensor.extract %table[%h, %d] : tensor<?x?xf32>\n"),
       {table}},
      {"DistanceOutsideCausal",
       makeAddition("    %d = arith.subi %m, %n : index\n"
                    "    %x = tensor.extract %table[%h, %d] : tensor<?x?xf32>\n") +
           " mask(%b, %h, %m, %n) {\n    %keep = arith.cmpi sle, %n, %m : index\n"
           "    attn.yield %keep : i1\n  }",
       {table}},
      {"IndexOutside",
       makeAddition("    %i = tensor.extract %buckets[%m, %n] : tensor<?x?xi32>\n"
                    "    %c400 = arith.constant 400000000 : i32\n    %c5 = arith.constant 5 : i32\n"
                    "    %c1 = arith.constant 1 : index\n    %e = arith.subi %i, %c5 : i32\n"
                    "    %f = arith.muli %e, %c400 : i32\n"
                    "    %j = arith.index_cast %f : i32 to index\n"
                    "    %g = arith.subi %h, %c1 : index\n"
                    "    %x = tensor.extract %table[%g, %j] : tensor<?x?xf32>\n"),
       {table, buckets}},
      // A temperature, which multiplies; read twice, the second time of 16 bits and under a mask.
      {"Temperature",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %x = tensor.extract %x0[%h] : tensor<?xf32>\n"
       "    %y = math.absf %x : f32\n    %u = arith.mulf %s, %y : f32\n"
       "    %z = tensor.extract %bias[%h, %h] : tensor<?x?xbf16>\n"
       "    %w = arith.extf %z : bf16 to f32\n    %a = arith.addf %u, %w : f32\n"
       "    %r = math.tanh %x : f32\n    %t = arith.addf %a, %r : f32\n"
       "    attn.yield %t : f32\n  } mask(%b, %h, %m, %n) {\n"
       "    %keep = arith.cmpi sle, %n, %m : index\n    attn.yield %keep : i1\n  }",
       {floats("tensor<?xf32>", "H"), kBias}},
  };
  return variants;
}

std::vector<Variant> getVariantsAndMasks() {
  std::vector<Variant> variants = getVariants();
  for (Variant &variant : getUserMasks())
    variants.push_back(std::move(variant));
  return variants;
}

Variant getVariant(llvm::StringRef name) {
  std::vector<Variant> variants = getVariantsAndMasks();
  auto variant = llvm::find_if(variants, [&](const Variant &v) { return v.name == name; });
  if (variant == variants.end())
    llvm::report_fatal_error("expected the name of a variant, got " + name);
  return *variant;
}

/// What is said about the schedule at the op: as many keys as the rule takes, so that none spill.
static std::string getAttributes(const Variant &variant, const Problem &p) {
  if (!p.slots)
    return "";
  std::string pack = " {attn.pack = " + std::to_string(p.slots);
  if (p.fills)
    return pack + "}";
  return pack + ", attn.schedule = #attn.schedule<block_m = 64, block_n = " +
         (variant.hasFactors()     ? "32"
          : variant.hasFunctions() ? "48"
                                   : "64") +
         ", stages = 2, splits = " + std::to_string(p.splits) + ">}";
}

/// With what is said about the schedule before the regions.
static std::string makeText(const Variant &variant, const Problem &p) {
  llvm::StringRef text = variant.text;
  size_t regions = std::min(text.find("score(%"), text.find("mask(%"));
  return (text.substr(0, regions) + getAttributes(variant, p) + " " +
          text.substr(std::min(regions, text.size())))
      .str();
}

TensorTypes::TensorTypes(const Problem &p) {
  const Extents any = {-1, -1, -1, -1, -1}, &e = p.extents ? *p.extents : any;
  auto type = [](std::initializer_list<int64_t> sizes, const std::string &element) {
    std::string text = "tensor<";
    for (int64_t size : sizes)
      text += (size < 0 ? "?" : std::to_string(size)) + "x";
    return text + element + ">";
  };
  std::initializer_list<int64_t> ofQuery = {e.batch, e.heads, e.m, p.d},
                                 ofKey = {e.batch, e.keyHeads, e.n, p.d},
                                 ofValue = {e.batch, e.keyHeads, e.n, p.dv},
                                 ofOutput = {e.batch, e.heads, e.m, p.dv};
  query = type(ofQuery, p.type);
  key = type(ofKey, p.type);
  value = type(ofValue, p.type);
  output = type(ofOutput, p.getResultType());
  outputGradient = type(ofOutput, p.type);
  queryGradient = type(ofQuery, p.getResultType());
  keyGradient = type(ofKey, p.getResultType());
  valueGradient = type(ofValue, p.getResultType());
  row = type({e.batch, e.heads, e.m}, "f32");
}

static std::string makeRaggedSource(const Variant &variant, const Problem &p) {
  TensorTypes t(p);
  RaggedSource source(p);
  source.addOperand("q", t.query, 'q');
  source.addOperand("k", t.key, 'k');
  source.addOperand("v", t.value, 'k');
  source.addCaptured(variant);
  source.addResult(p.withLse ? "%o#0" : "%o", t.output, 'q', p.clears);
  if (p.withLse)
    source.addResult("%o#1", t.row, 'q');
  std::string results = t.output + (p.withLse ? ", " + t.row : "");
  std::string attention =
      llvm::formatv("  %o{0} = attn.attention %q, %k, %v {1}\n    : {2}, {3}, {4} -> {5}\n",
                    p.withLse ? ":2" : "", makeText(variant, p), t.query, t.key, t.value, results);
  return source.write("attention", variant.prologue + attention);
}

/// Rows of queries and of keys that share a scale, where blocks do.
static constexpr int64_t kQueryBlock = 32, kKeyBlock = 64;

std::vector<Capture> getScales(const Problem &p) {
  switch (p.scales) {
  case Scales::None:
    return {};
  case Scales::Tensor:
    return {{Capture::Scales, "%scale_q", "tensor<f32>"},
            {Capture::Scales, "%scale_k", "tensor<f32>"},
            {Capture::Scales, "%scale_v", "tensor<f32>"}};
  case Scales::Heads:
    return {{Capture::Scales, "%scale_q", "tensor<?x?xf32>", "BK"},
            {Capture::Scales, "%scale_k", "tensor<?x?xf32>", "BK"},
            {Capture::Scales, "%scale_v", "tensor<?x?xf32>", "BK"}};
  case Scales::Blocks:
    return {{Capture::Scales, "%scale_q", "tensor<?x?x?xf32>", "BKQ"},
            {Capture::Scales, "%scale_k", "tensor<?x?x?xf32>", "BKC"},
            {Capture::Scales, "%scale_v", "tensor<?x?xf32>", "BK"}};
  }
  llvm_unreachable("all scales are handled");
}

/// Elements of 8 bits with scales as what they stand for.
static std::string makeScaled(const Problem &p, const TensorTypes &narrow, const TensorTypes &t) {
  std::string text;
  const std::tuple<const char *, std::string, std::string, int64_t> views[] = {
      {"q", narrow.query, t.query, kQueryBlock},
      {"k", narrow.key, t.key, kKeyBlock},
      {"v", narrow.value, t.value, 0}};
  for (auto [view, scale] : llvm::zip_equal(views, getScales(p))) {
    auto [name, from, to, block] = view;
    std::string size = p.scales == Scales::Blocks && block ? " block " + std::to_string(block) : "";
    text += llvm::formatv("  %{0} = attn.scaled %narrow_{0}, {1}{2} : {3}, {4} -> {5}\n", name,
                          scale.name, size, from, scale.type, to);
  }
  return text;
}

std::string makeSource(const Variant &variant, const Problem &p) {
  if (p.isRagged)
    return makeRaggedSource(variant, p);
  TensorTypes t(p);
  int numResults = 1 + p.withLse + p.withLow;
  std::string results = t.output, values = numResults > 1 ? "#0" : "";
  for (int i = 1; i < numResults; ++i) {
    results += ", " + t.row;
    values += ", %o#" + std::to_string(i);
  }
  std::string arguments = llvm::formatv("%q: {0}, %k: {1}, %v: {2}", t.query, t.key, t.value);
  std::string pages;
  if (p.page) {
    std::string table = p.wideTable ? "tensor<?x?xi64>" : "tensor<?x?xi32>";
    auto pool = [&](int64_t columns) {
      return llvm::formatv("tensor<?x{0}x?x{1}x{2}>", p.page, columns, p.type).str();
    };
    arguments = llvm::formatv("%q: {0}, %pool_k: {1}, %pool_v: {2}, %table: {3}", t.query,
                              pool(p.d), pool(p.dv), table);
    pages = llvm::formatv("  %k = attn.paged %pool_k[%table] : {0}, {2} -> {3}\n"
                          "  %v = attn.paged %pool_v[%table] : {1}, {2} -> {4}\n",
                          pool(p.d), pool(p.dv), table, t.key, t.value);
  }
  if (!p.narrow.empty()) {
    Problem of = p;
    of.type = p.narrow;
    TensorTypes narrow(of);
    bool isScaled = p.scales != Scales::None;
    arguments = llvm::formatv("%{3}q: {0}, %{3}k: {1}, %{3}v: {2}", narrow.query, narrow.key,
                              narrow.value, isScaled ? "narrow_" : "");
    if (isScaled)
      pages = makeScaled(p, narrow, t);
    else
      std::tie(t.query, t.key, t.value) = std::tie(narrow.query, narrow.key, narrow.value);
  }
  for (const Capture &capture : variant.captures)
    arguments += std::string(", ") + capture.name + ": " + capture.type;
  for (const Capture &capture : getScales(p))
    arguments += std::string(", ") + capture.name + ": " + capture.type;
  // The variant's parts stand in the order of the syntax: variants, scale, sink, then regions.
  return llvm::formatv("func.func @attention({0}) -> ({1}) {{\n{2}"
                       "  %o{3} = attn.attention %q, %k, %v {4}\n"
                       "    : {5}, {6}, {7} -> {1}\n  return %o{8} : {1}\n}\n",
                       arguments, results, pages + variant.prologue,
                       numResults > 1 ? ":" + std::to_string(numResults) : "", makeText(variant, p),
                       t.query, t.key, t.value, values);
}

//===----------------------------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------------------------===//

Array allocate(ElementKind kind, llvm::ArrayRef<int64_t> shape, Memory memory) {
  llvm::SmallVector<unsigned> order;
  if (memory == Memory::RowsFirst && shape.size() == 4)
    order = {0, 2, 1, 3};
  return llvm::cantFail(Array::allocate(kind, shape, order));
}

ElementKind getElementKind(llvm::StringRef type) {
  llvm::StringRef name = type.drop_back(type.ends_with(">"));
  name = name.drop_front(name.find_last_of("x<") + 1);
  for (ElementKind kind :
       {ElementKind::F16, ElementKind::BF16, ElementKind::F32, ElementKind::F8E4M3FN,
        ElementKind::F8E5M2, ElementKind::I32, ElementKind::I64})
    if (name == getName(kind))
      return kind;
  llvm::reportFatalUsageError("expected an element type of the execution tests, got " + type);
}

static Input makeCapture(const Capture &capture, const Problem &p, const Extents &e,
                         uint64_t seed) {
  Input input;
  switch (capture.kind) {
  case Capture::QueryIds:
  case Capture::KeyIds:
    input.array = allocate(getElementKind(capture.type),
                           {e.batch, capture.kind == Capture::QueryIds ? e.m : e.n});
    fillSorted(input.array, seed, 5);
    return input;
  case Capture::Lengths:
    input.array = allocate(getElementKind(capture.type), {e.batch});
    fillUniform(input.array, seed, 0, e.n + 3);
    return input;
  case Capture::Offsets: {
    int64_t rows = llvm::StringRef(capture.name).ends_with("q") ? e.m : e.n;
    input.array = allocate(getElementKind(capture.type), {e.batch + 1});
    for (int64_t i = 0; i <= e.batch; ++i)
      input.array.set(i, double(i * rows));
    return input;
  }
  case Capture::Slopes:
    // ALiBi's slopes. With larger ones scores reach hundreds, whose rounding in f32 exceeds any
    // useful bound.
    input.array = allocate(getElementKind(capture.type), {e.heads});
    for (int64_t i = 0; i < e.heads; ++i)
      input.array.set(i, std::exp2(-8.0f * float(i + 1) / float(e.heads)));
    return input;
  case Capture::Seed:
    // Doubles hold it.
    input.array = allocate(ElementKind::I64, {1});
    fillUniform(input.array, seed, -(int64_t(1) << 40), int64_t(1) << 40);
    return input;
  case Capture::Sink:
    input.array = allocate(ElementKind::F32, {e.heads});
    fillNormal(input.array, seed);
    return input;
  case Capture::Bias:
    input.array = allocate(getElementKind(capture.type), {e.heads, 100});
    fillNormal(input.array, seed);
    return input;
  case Capture::Floats:
  case Capture::Large:
  case Capture::Scales:
  case Capture::Buckets: {
    llvm::SmallVector<int64_t> shape;
    for (char dim : llvm::StringRef(capture.dims))
      shape.push_back(dim == 'B'   ? e.batch
                      : dim == 'H' ? e.heads
                      : dim == 'M' ? e.m
                      : dim == 'N' ? e.n
                      : dim == 'K' ? e.keyHeads
                      : dim == 'Q' ? int64_t(llvm::divideCeil(e.m, kQueryBlock))
                      : dim == 'C' ? int64_t(llvm::divideCeil(e.n, kKeyBlock))
                                   : kTableSize);
    input.array = allocate(getElementKind(capture.type), shape);
    if (capture.kind == Capture::Scales) {
      fillNormal(input.array, seed);
      for (int64_t i = 0; i < input.array.size(); ++i)
        input.array.set(i, 0.25 + std::abs(input.array.get(i)));
      return input;
    }
    if (capture.kind == Capture::Large)
      fillLarge(input.array, seed);
    else if (capture.kind == Capture::Floats)
      fillNormal(input.array, seed);
    else
      fillUniform(input.array, seed, 0, kTableSize - 1);
    return input;
  }
  case Capture::Scale:
    input.isScalar = true;
    input.scalar = float(0.5 + 0.25 * (seed % 5)) / std::sqrt(float(p.d));
    return input;
  }
  llvm_unreachable("all kinds are handled");
}

std::vector<Input> makeInputs(const Variant &variant, const Problem &p, const Extents &e,
                              uint64_t seed) {
  std::vector<Input> inputs;
  const llvm::SmallVector<int64_t> shapes[] = {{e.batch, e.heads, e.m, p.d},
                                               {e.batch, e.keyHeads, e.n, p.d},
                                               {e.batch, e.keyHeads, e.n, p.dv}};
  // Three times as many pages as a sequence has, in random order; sequences share some.
  int64_t entries = p.page ? e.n / p.page : 0, pages = 3 * entries;
  for (const auto &shape : shapes) {
    bool isPool = p.page && !inputs.empty();
    inputs.emplace_back().array =
        isPool ? allocate(getElementKind(p.type), {pages, p.page, shape[1], shape[3]}, p.memory)
               : allocate(getElementKind(p.getOperandType()), shape, p.memory);
    fillNormal(inputs.back().array, ++seed);
  }
  if (p.page) {
    inputs.emplace_back().array =
        allocate(p.wideTable ? ElementKind::I64 : ElementKind::I32, {e.batch, entries});
    fillUniform(inputs.back().array, seed + 77, 0, std::max<int64_t>(pages - 1, 0));
  }
  if (variant.large) {
    for (size_t i : {0, 1})
      fillSmallIntegers(inputs[i].array, seed + i);
    enlargeRows(inputs[0].array, seed, variant.large->rowExponent);
  }
  for (const Capture &capture : variant.captures) {
    inputs.push_back(makeCapture(capture, p, e, ++seed));
    if (variant.large && capture.kind == Capture::Scale)
      inputs.back().scalar = std::ldexp(1.0, -int(seed % 4) - 1);
  }
  for (const Capture &capture : getScales(p))
    inputs.push_back(makeCapture(capture, p, e, ++seed));
  return inputs;
}

} // namespace attn::test
