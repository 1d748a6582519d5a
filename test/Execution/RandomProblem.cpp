//===- RandomProblem.cpp - attentions drawn at random -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/RandomProblem.h"
#include "test/Execution/LargeScores.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <tuple>

namespace attn::test {

/// What an attention is made of.
enum Part : unsigned {
  Causal,
  Window,
  Prefix,
  PrefixCaptured,
  Chunked,
  Document,
  DocumentSorted,
  KeyLength,
  Softcap,
  Alibi,
  RelativeBias,
  Scale,
  Sink,
  ScoreRegion,
  MaskRegion,
  kNumParts
};

/// An attention being put together.
struct ProblemGenerator::Draft {
  std::vector<Capture> arguments;
  std::vector<std::string> variants, captures, captureTypes;
  std::string prologue, scale, sink, scoreRegion, maskRegion;
  /// The types of this kernel's captured tensors.
  std::string integer, slopes, bias;

  void addArgument(const Capture &capture) {
    if (llvm::none_of(arguments, [&](const Capture &c) { return c.kind == capture.kind; }))
      arguments.push_back(capture);
  }
  void addCapture(Capture capture, const std::string &type, const char *name = nullptr) {
    capture.type = type;
    addArgument(capture);
    captures.push_back(name ? name : capture.name);
    captureTypes.push_back(type);
  }
  /// With this in place of a score region.
  std::string makeText(const std::string &score) const {
    std::string text;
    if (!variants.empty())
      text = "variants [" + llvm::join(variants, ", ") + "]";
    if (!captures.empty())
      text +=
          " captures(" + llvm::join(captures, ", ") + " : " + llvm::join(captureTypes, ", ") + ")";
    return text + scale + sink + score + maskRegion;
  }
};

ProblemGenerator::ProblemGenerator(uint64_t seed, unsigned kernel, TestDevice &device)
    : random(seed * 1000003 + kernel), kernel(kernel), device(device) {}

/// The pair of parts with the number `index`, modulo their count; twice the same part is one alone.
static std::pair<unsigned, unsigned> getPair(uint64_t index) {
  index %= kNumParts * (kNumParts + 1) / 2;
  unsigned first = 0;
  while (index >= kNumParts - first)
    index -= kNumParts - first++;
  return {first, first + unsigned(index)};
}

ProblemGenerator::Draft ProblemGenerator::makeDraft() {
  Draft draft;
  draft.integer = pick(std::vector<std::string>{"i32", "i32", "i64"});
  draft.slopes = pick(std::vector<std::string>{"f32", "f32", "f16", "bf16"});
  draft.bias = pick(std::vector<std::string>{"f32", "f16", "bf16"});
  return draft;
}

Variant ProblemGenerator::drawVariant() {
  Draft draft = makeDraft();
  auto [first, second] = getPair(kernel);
  std::vector<unsigned> parts = {first};
  if (second != first)
    parts.push_back(second);
  while (chance(6))
    if (unsigned part = between(0, kNumParts - 1); !llvm::is_contained(parts, part))
      parts.push_back(part);
  // Score variants compose in the order of the list.
  std::shuffle(parts.begin(), parts.end(), random);
  // One kernel in forty is attention alone.
  if (!chance(40))
    for (unsigned part : parts)
      addPart(part, draft);

  return {"Random", draft.makeText(draft.scoreRegion), draft.arguments, draft.prologue};
}

void ProblemGenerator::addPart(unsigned part, Draft &draft) {
  switch (part) {
  case Softcap:
    return draft.variants.push_back(
        llvm::formatv("#attn.softcap<{0}.0 : f32>", pick(std::vector<int>{2, 5, 30})));
  case Alibi:
    draft.variants.push_back("#attn.alibi<" + drawAlignment() + ">");
    return draft.addCapture(kSlopes, "tensor<?x" + draft.slopes + ">");
  case RelativeBias:
    draft.variants.push_back(
        llvm::formatv("#attn.relative_bias<{0}, {1}>", between(0, 99), drawAlignment()));
    return draft.addCapture(kBias, "tensor<?x?x" + draft.bias + ">");
  case Scale:
    draft.scale = " scale(%factor)";
    return draft.addArgument(kScale);
  case Sink:
    draft.sink = " sink(%sink : tensor<?xf32>)";
    return draft.addArgument(kSink);
  case ScoreRegion:
    draft.scoreRegion = drawScoreRegion();
    return;
  case MaskRegion:
    draft.maskRegion = drawMaskRegion();
    return;
  default:
    return addMask(part, draft);
  }
}

void ProblemGenerator::addMask(unsigned part, Draft &draft) {
  std::string alignment = drawAlignment();
  std::string lengths = "tensor<?x" + draft.integer + ">";
  switch (part) {
  case Causal:
    return draft.variants.push_back("#attn.causal<" + alignment + ">");
  case Window:
    return draft.variants.push_back(
        llvm::formatv("#attn.window<{0}, {1}, {2}>", pick(std::vector<int>{-1, 0, 5, 64, 100, 200}),
                      pick(std::vector<int>{-1, 0, 1, 30, 130}), alignment));
  case Prefix:
    return draft.variants.push_back(
        llvm::formatv("#attn.prefix<{0}, {1}>", between(0, 200), alignment));
  case PrefixCaptured:
    draft.variants.push_back("#attn.prefix<-1, " + alignment + ">");
    return draft.addCapture(kLengths, lengths);
  case Chunked:
    return draft.variants.push_back(
        llvm::formatv("#attn.chunked<{0}, {1}>", between(1, 200), alignment));
  case KeyLength:
    draft.variants.push_back("#attn.key_length");
    return draft.addCapture(kLengths, lengths);
  default:
    return addDocument(part == DocumentSorted, draft);
  }
}

void ProblemGenerator::addDocument(bool isSorted, Draft &draft) {
  std::string type = "tensor<?x?x" + draft.integer + ">";
  draft.variants.push_back("#attn.document");
  draft.addCapture(kQueryIds, type, isSorted ? "%sorted_q" : nullptr);
  draft.addCapture(kKeyIds, type, isSorted ? "%sorted_k" : nullptr);
  if (isSorted)
    draft.prologue = llvm::formatv("  %sorted_q = attn.assume nondecreasing %ids_q : {0}\n"
                                   "  %sorted_k = attn.assume nondecreasing %ids_k : {0}\n",
                                   type);
}

/// The distance times a slope, bounded, is added.
std::string ProblemGenerator::drawScoreRegion() {
  std::string distance = chance(2) ? "%m, %n" : "%n, %m";
  return llvm::formatv(" score(%s, %b, %h, %m, %n) {{\n"
                       "    %slope = arith.constant {0} : f32\n"
                       "    %d = arith.subi {1} : index\n"
                       "    %i = arith.index_cast %d : index to i32\n"
                       "    %x = arith.sitofp %i : i32 to f32\n"
                       "    %y = arith.mulf %x, %slope : f32\n"
                       "    %z = math.tanh %y : f32\n"
                       "    %t = arith.addf %s, %z : f32\n"
                       "    attn.yield %t : f32\n  }",
                       pick(std::vector<const char *>{"0.01", "0.125", "-0.5"}), distance);
}

/// Columns or rows by a remainder: nothing that an analysis of intervals could decide.
std::string ProblemGenerator::drawMaskRegion() {
  return llvm::formatv(" mask(%b, %h, %m, %n) {{\n"
                       "    %c = arith.constant {0} : index\n"
                       "    %z = arith.constant 0 : index\n"
                       "    %hn = arith.addi {1}, %h : index\n"
                       "    %r = arith.remui %hn, %c : index\n"
                       "    %keep = arith.cmpi {2}, %r, %z : index\n"
                       "    attn.yield %keep : i1\n  }",
                       between(2, 7), chance(2) ? "%n" : "%m", chance(2) ? "ne" : "eq");
}

Problem ProblemGenerator::drawProblem() {
  Problem p;
  p.type = pick(device.getTypes());
  p.d = drawColumns();
  p.dv = chance(2) ? drawColumns() : p.d;
  p.withLse = chance(2);
  p.memory = pick(std::vector<Memory>{Memory::RowMajor, Memory::RowsFirst, Memory::Random});
  if (chance(3)) {
    TestDevice::ScheduleLimits limits = device.getScheduleLimits(p);
    p.blockM = limits.rowStep * between(1, limits.mostRows / limits.rowStep);
    p.blockN = limits.keyStep * between(1, limits.mostKeys / limits.keyStep);
  }
  if (chance(4))
    p.splits = between(2, 7);
  if (chance(3)) {
    p.slots = pick(std::vector<int64_t>{2, 4, 8, 16});
    p.fills = chance(4);
  }
  return p;
}

Variant ProblemGenerator::drawGradVariant() {
  return chance(4) ? pick(getTrainedScores()) : drawVariant();
}

std::pair<Variant, Problem> ProblemGenerator::drawLargeGradients() {
  Problem problem = drawGradProblem();
  Draft draft = makeDraft();
  addPart(Scale, draft);
  // Masks that a kernel decides by intervals, by tensors and by neither.
  std::vector<unsigned> parts = {Causal,   Window,         Prefix,    PrefixCaptured, Chunked,
                                 Document, DocumentSorted, KeyLength, Sink,           MaskRegion};
  std::shuffle(parts.begin(), parts.end(), random);
  for (int64_t i = 0, count = between(0, 2); i < count; ++i)
    addPart(parts[i], draft);
  LargeScores large;
  std::string score;
  Capture capture =
      makeLargeCapture(pick(std::vector<const char *>{"", "M", "HM", "N", "BN", "MN", "BHMN"}));
  capture.isWanted = chance(2);
  // On GPUs scores that nothing is added to keep one part of their log-sum-exp.
  bool isPlain = !device.roundsGradFactors() && chance(4), isHalf = problem.type == "f16";
  if (!isPlain) {
    draft.addArgument(capture);
    // Gradients grow as scores do, and f16 has nothing above 65504.
    if (!isHalf)
      large.factor = pick(std::vector<double>{1, 1, 0x1p-60, 0x1p10, 0x1p20});
    score = makeLargeScore(large.factor, capture);
  }
  large.reference = draft.makeText(
      makeLargeReference(large.factor, isPlain ? nullptr : &capture, device.truncatesBase2()));
  if (isPlain || chance(3))
    large.rowExponent = between(1, isHalf ? 4 : 13);
  Variant variant = {"Large", draft.makeText(score), draft.arguments, draft.prologue};
  variant.large = large;
  return {variant, problem};
}

Problem ProblemGenerator::drawGradProblem() {
  Problem p = drawProblem();
  p.splits = 1;
  p.slots = 0;
  bool isSmall = p.blockM;
  p.blockM = p.blockN = 0;
  if (isSmall)
    std::tie(p.blockM, p.blockN) = device.getSmallGradBlock(p);
  return p;
}

int64_t ProblemGenerator::drawColumns() {
  if (chance(4))
    return pick(std::vector<int64_t>{64, 128, 128, 96, 80, 192, 256});
  int64_t multiple = device.getColumnMultiple();
  return multiple * between(1, 256 / multiple);
}

Extents ProblemGenerator::drawExtents(bool isSmall) {
  Extents e;
  e.m = drawLength();
  e.n = chance(3) ? e.m : chance(8) ? between(600, 3000) : drawLength();
  e.batch = chance(50) ? 0 : between(1, 3);
  e.keyHeads = between(1, 3);
  e.heads = e.keyHeads * pick(std::vector<int64_t>{1, 1, 2, 3, 4, 8});
  // As few as decoding has.
  if (chance(4))
    e.m = between(1, 16);
  if (isSmall) {
    e.m %= 151;
    e.n %= 151;
  }
  // The reference takes a nanosecond for each product.
  int64_t most = isSmall ? 150 * 150 : 400 * 400;
  while (e.batch * e.heads * e.m * e.n > most) {
    e.batch = 1;
    int64_t &length = e.m > 1 ? e.m : e.n;
    length = (length + 1) / 2;
  }
  return e;
}

/// Around the edges of tiles, or anything.
int64_t ProblemGenerator::drawLength() {
  if (chance(25))
    return 0;
  if (chance(3))
    return std::max<int64_t>(
        1, pick(std::vector<int64_t>{1, 8, 16, 64, 80, 96, 128, 176, 256, 384}) + between(-1, 1));
  return chance(2) ? between(1, 140) : between(1, 600);
}

} // namespace attn::test
