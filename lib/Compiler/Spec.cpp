//===- Spec.cpp - the common attentions as IR text ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <array>

using namespace llvm;

namespace attn {

/// Whether elements come with scales.
static bool isScaled(DataType type) {
  return type == DataType::F8E4M3FN || type == DataType::F8E5M2;
}

/// Elements of 16 bits have an output of theirs or of f32. `outputType` has a default for elements
/// of 8 bits, so that no other one tells what a program said.
static DataType getOutputType(const AttentionSpec &spec) {
  bool isWide = spec.outputType == DataType::F32 || isScaled(spec.type);
  return isWide ? spec.outputType : spec.type;
}

namespace {
/// Writes the function of a spec.
class Writer {
public:
  explicit Writer(const AttentionSpec &spec)
      : spec(spec), isScaled(attn::isScaled(spec.type)), element(getName(spec.type)),
        q(getTensor("?x?x?", spec.headDim)),
        v(getTensor("?x?x?", spec.valueDim ? spec.valueDim : spec.headDim)), wideQ(widen(q)),
        wideV(widen(v)), output(isScaled ? wideV : setElement(v, getOutputType(spec))) {}

  std::string write() const {
    if (spec.isGradient)
      return writeGradient();
    std::string results = output + (spec.returnsLse ? ", tensor<?x?x?xf32>" : "");
    std::string names = std::string("%output") + (spec.returnsLse ? ", %lse" : "");
    std::string returned = results, returnedNames = names;
    if (spec.isRagged) {
      returned = getRows(output) + (spec.returnsLse ? ", tensor<?x?xf32>" : "");
      returnedNames = std::string("%rows_output") + (spec.returnsLse ? ", %rows_lse" : "");
    }
    return formatv(
        "func.func @attention({0}) -> ({1}) {{\n{2}  {3} = attn.attention %{11}query, %{11}key, "
        "%{11}value{4}\n{5}      : {6}, {6}, {7} -> {8}\n{9}  return {10} : {1}\n}\n",
        writeArguments(), returned, writeViews(), names, writeWords(), writeRegions(), wideQ, wideV,
        results, writePlaces(), returnedNames, isScaled ? "scaled_" : "");
  }

private:
  std::string writeGradient() const {
    constexpr StringLiteral lse = "tensor<?x?x?xf32>";
    DataType type = spec.hasWideGradients ? DataType::F32 : spec.type;
    std::string ofQ = setElement(q, type), ofV = setElement(v, type);
    SmallVector<std::string> names = {"%d_query", "%d_key", "%d_value"}, types = {ofQ, ofQ, ofV};
    std::string wanted = formatv("d_query({0}) d_key({0}) d_value({1})", ofQ, ofV);
    auto want = [&](StringRef name, StringRef word) {
      names.push_back(("%d_" + name).str());
      types.push_back(kHeads.str());
      wanted += formatv(" {0}({1})", word, kHeads);
    };
    if (spec.hasSink)
      want("sink", "d_sink");
    if (spec.hasAlibi)
      want("slopes", "d_wrt");
    std::string returned = join(types, ", "), all = join(names, ", ");
    return formatv("func.func @attention_gradient({0}, %output: {11}, %lse: {2}, %d_output: {1}) "
                   "-> ({3}) {{\n{4}  {5} = attn.attention_grad %query, %key, %value, %output, "
                   "%lse, %d_output{6}{7}\n{8}      : {9}, {9}, {1}, {11}, {2}, {1} -> {10}\n"
                   "  return {5} : {3}\n}\n",
                   writeArguments(), v, lse, returned, writeViews(), all, writeWords(),
                   spec.hasAlibi ? formatv(" wrt(%slopes : {0})", kHeads).str() : "",
                   writeRegions(), q, wanted, output);
  }

  std::string getTensor(StringRef shape, int64_t columns) const {
    return formatv("tensor<{0}x{1}x{2}>", shape, columns, element);
  }
  /// The same tensor of the numbers that elements with scales stand for.
  std::string widen(StringRef tensor) const {
    return isScaled ? setElement(tensor, spec.outputType) : tensor.str();
  }
  /// The same tensor of elements of another type than its own.
  std::string setElement(StringRef tensor, DataType type) const {
    return (tensor.drop_back(element.size() + 1) + getName(type) + ">").str();
  }
  std::string getPool(int64_t columns) const {
    return getTensor(formatv("?x{0}x?", spec.pageSize).str(), columns);
  }
  /// The type of the rows of sequences that a batch shows, a dimension less.
  static std::string getRows(StringRef batch) {
    return ("tensor<" + batch.substr(StringRef("tensor<?x").size())).str();
  }
  std::string getKeyPool() const { return getPool(spec.headDim); }
  std::string getValuePool() const { return getPool(spec.valueDim ? spec.valueDim : spec.headDim); }

  std::string writeArguments() const {
    std::string text = "%query: " + q;
    if (spec.isRagged)
      text = formatv("%rows_query: {0}, %rows_key: {0}, %rows_value: {1}, %cu_seqlens_q: {2}, "
                     "%cu_seqlens_k: {2}, %max_seqlen_q: {3}, %max_seqlen_k: {3}",
                     getRows(q), getRows(v), kLengths, kSize);
    else if (spec.pageSize)
      text += formatv(", %key_cache: {0}, %value_cache: {1}, %page_table: {2}", getKeyPool(),
                      getValuePool(), kTable);
    else
      text += formatv(", %key: {0}, %value: {1}", q, v);
    for (auto [name, placement] : listPositions())
      if (placement != Positions::Own)
        text += formatv(", %{0}: {1}", name, getPlaces(placement));
    if (hasPositions())
      text += formatv(", %total: {0}", kTotal);
    if (spec.hasLengths)
      text += formatv(", %seqused_k: {0}", kLengths);
    if (spec.hasDocuments)
      text += formatv(", %query_ids: {0}, %key_ids: {0}", kTable);
    if (spec.hasAlibi)
      text += formatv(", %slopes: {0}", kHeads);
    if (spec.dropout != 0)
      text += formatv(", %seed: {0}", kSeed);
    if (isScaled)
      text += formatv(", %q_descale: {0}, %k_descale: {0}, %v_descale: {0}", kScales);
    if (spec.hasScale)
      text += ", %scale: f32";
    if (spec.hasSink)
      text += formatv(", %sink: {0}", kHeads);
    return text;
  }

  /// What stands before the attention: keys and values as their tables find them, and M.
  std::string writeViews() const {
    std::string text;
    if (spec.isRagged) {
      text = "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n";
      for (char of : {'q', 'k'})
        text += formatv("  %most_{0} = tensor.dim %max_seqlen_{0}, %c0 : {1}\n", of, kSize);
      for (auto [name, of, type] :
           {std::tuple("query", 'q', q), std::tuple("key", 'k', q), std::tuple("value", 'k', v)})
        text +=
            formatv("  %{0} = attn.ragged %rows_{0}[%cu_seqlens_{1}] up_to %most_{1} : {2}, {3} "
                    "-> {4}\n",
                    name, of, getRows(type), kLengths, type);
    }
    if (spec.pageSize)
      for (auto [name, pool, type] :
           {std::tuple("key", getKeyPool(), q), std::tuple("value", getValuePool(), v)})
        text += formatv("  %{0} = attn.paged %{0}_cache[%page_table] : {1}, {2} -> {3}\n", name,
                        pool, kTable, type);
    if (isScaled)
      for (auto [name, of, type, wide] :
           {std::tuple("query", 'q', q, wideQ), std::tuple("key", 'k', q, wideQ),
            std::tuple("value", 'v', v, wideV)})
        text += formatv("  %scaled_{0} = attn.scaled %{0}, %{1}_descale : {2}, {3} -> {4}\n", name,
                        of, type, kScales, wide);
    if (countsFromLengths())
      text +=
          formatv("  %c2 = arith.constant 2 : index\n  %rows = tensor.dim %query, %c2 : {0}\n", q);
    return text;
  }

  /// What stands after it: rows of results where those of their sequences are.
  std::string writePlaces() const {
    if (!spec.isRagged)
      return "";
    std::string text = formatv("  %rows = tensor.dim %rows_query, %c0 : {0}\n"
                               "  %heads = tensor.dim %rows_query, %c1 : {0}\n",
                               getRows(q));
    auto place = [&](StringRef name, StringRef type) {
      text += formatv("  %empty_{0} = tensor.empty(%rows, %heads) : {1}\n"
                      "  %rows_{0} = attn.place %{0}[%cu_seqlens_q] into %empty_{0} : {2}, {3} -> "
                      "{1}\n",
                      name, getRows(type), type, kLengths);
    };
    place("output", output);
    if (spec.returnsLse)
      place("lse", "tensor<?x?x?xf32>");
    return text;
  }

  std::string writeWords() const {
    SmallVector<std::string> variants;
    SmallVector<StringRef> captures, types;
    auto capture = [&](StringRef name, StringRef type) {
      captures.push_back(name);
      types.push_back(type);
    };
    if (hasPositions()) {
      std::string placements = "own, own";
      for (auto [name, placement] : listPositions()) {
        placements += ", " + getPlacement(placement).str();
        if (placement != Positions::Own)
          capture(name == "row_positions" ? "%row_positions" : "%key_positions",
                  getPlaces(placement));
      }
      variants.push_back("#attn.positions<" + placements + ">");
      capture("%total", kTotal);
    }
    if (spec.causal == Causal::TopLeft)
      variants.push_back("#attn.causal<top_left>");
    if (spec.causal == Causal::BottomRight && !spec.hasLengths)
      variants.push_back("#attn.causal<bottom_right>");
    // A bound that is none is refused by the variant, whoever counts.
    bool isBound = spec.windowLeft >= -1 && spec.windowRight >= -1;
    if (hasWindow() && (!spec.hasLengths || !isBound))
      variants.push_back(
          formatv("#attn.window<{0}, {1}, bottom_right>", spec.windowLeft, spec.windowRight));
    if (spec.hasDocuments) {
      variants.push_back("#attn.document");
      capture("%query_ids", kTable);
      capture("%key_ids", kTable);
    }
    // Of what a region already does the rest is done there, since scores compose in order.
    if (spec.softcap != 0 && !hasScoreRegion())
      variants.push_back("#attn.softcap<" + writeNumber(spec.softcap) + ">");
    if (spec.hasAlibi && !hasScoreRegion()) {
      variants.push_back("#attn.alibi<bottom_right>");
      capture("%slopes", kHeads);
    }
    if (spec.dropout != 0) {
      variants.push_back("#attn.dropout<" + writeNumber(spec.dropout) + ">");
      capture("%seed", kSeed);
    }
    std::string text;
    if (!variants.empty())
      text += " variants [" + join(variants, ", ") + "]";
    if (!captures.empty())
      text += " captures(" + join(captures, ", ") + " : " + join(types, ", ") + ")";
    if (spec.hasScale)
      text += " scale(%scale)";
    if (spec.hasSink)
      text += formatv(" sink(%sink : {0})", kHeads);
    return text;
  }
  /// With a point, as numbers of the IR have.
  static std::string writeNumber(double number) { return formatv("{0:e17}", number); }

  std::string writeRegions() const { return writeScore() + writeMask(); }

  /// Distances count from the last key that a sequence has, which no variant knows.
  std::string writeScore() const {
    if (!hasScoreRegion())
      return "";
    SmallVector<std::string> lines;
    StringRef score = "s";
    if (spec.softcap != 0) {
      lines.push_back("%cap = arith.constant " + writeNumber(spec.softcap) + " : f32");
      lines.push_back("%small = arith.divf %s, %cap : f32");
      lines.push_back("%bounded = math.tanh %small : f32");
      lines.push_back("%capped = arith.mulf %bounded, %cap : f32");
      score = "capped";
    }
    llvm::append_range(lines, writeOwn());
    lines.push_back("%offset = arith.subi %own, %n : index");
    lines.push_back("%distance = math.absi %offset : index");
    lines.push_back("%number = arith.index_cast %distance : index to i64");
    lines.push_back("%float = arith.sitofp %number : i64 to f32");
    lines.push_back(formatv("%slope = tensor.extract %slopes[%h] : {0}", kHeads));
    lines.push_back("%bias = arith.mulf %slope, %float : f32");
    lines.push_back(formatv("%t = arith.subf %{0}, %bias : f32", score));
    lines.push_back("attn.yield %t : f32");
    return "    score(%s, %b, %h, %m, %n) {\n      " + join(lines, "\n      ") + "\n    }\n";
  }
  bool hasScoreRegion() const { return spec.hasAlibi && spec.hasLengths; }

  /// The key at the row's own position, in the keys that its sequence has.
  SmallVector<std::string> writeOwn() const {
    return {formatv("%length = tensor.extract %seqused_k[%b] : {0}", kLengths),
            "%end = arith.index_cast %length : i32 to index",
            "%after = arith.addi %m, %end : index", "%own = arith.subi %after, %rows : index"};
  }

  /// The keys that a sequence has, and what its rows see of them: they count from its last key.
  std::string writeMask() const {
    if (!spec.hasLengths)
      return "";
    SmallVector<std::string> lines = writeOwn();
    if (!countsFromLengths())
      lines.truncate(2);
    unsigned numKept = 0;
    auto keep = [&](StringRef predicate, StringRef bound) {
      lines.push_back(
          formatv("%is{0} = arith.cmpi {1}, %n, %{2} : index", numKept, predicate, bound));
      if (numKept)
        lines.push_back(
            formatv("%keep{0} = arith.andi %{1}, %is{0} : i1", numKept, getKept(numKept)));
      ++numKept;
    };
    keep("slt", "end");
    if (spec.causal == Causal::BottomRight)
      keep("sle", "own");
    for (auto [name, operation, distance, predicate] :
         {std::tuple("left", "subi", spec.windowLeft, "sge"),
          std::tuple("right", "addi", spec.windowRight, "sle")}) {
      if (distance < 0)
        continue;
      lines.push_back(formatv("%{0}_distance = arith.constant {1} : index", name, distance));
      lines.push_back(formatv("%{0} = arith.{1} %own, %{0}_distance : index", name, operation));
      keep(predicate, name);
    }
    lines.push_back(formatv("attn.yield %{0} : i1", getKept(numKept)));
    return "    mask(%b, %h, %m, %n) {\n      " + join(lines, "\n      ") + "\n    }\n";
  }
  /// The name of the conjunction of so many conditions.
  static std::string getKept(unsigned count) {
    return (count == 1 ? "is" : "keep") + std::to_string(count - 1);
  }

  bool hasPositions() const {
    return spec.rowPositions != Positions::Own || spec.keyPositions != Positions::Own;
  }
  std::array<std::pair<StringRef, Positions>, 2> listPositions() const {
    return {{{"row_positions", spec.rowPositions}, {"key_positions", spec.keyPositions}}};
  }
  /// As the variant spells it, and the type of what is captured.
  static StringRef getPlacement(Positions placement) {
    return placement == Positions::Own      ? "own"
           : placement == Positions::Origin ? "origin"
                                            : "table";
  }
  static StringRef getPlaces(Positions placement) {
    return placement == Positions::Origin ? kOrigin : kLengths;
  }

  bool hasWindow() const { return spec.windowLeft != -1 || spec.windowRight != -1; }
  bool countsFromLengths() const {
    return spec.hasLengths && (spec.causal == Causal::BottomRight || hasWindow() || spec.hasAlibi);
  }

  static constexpr StringRef kTable = "tensor<?x?xi32>", kLengths = "tensor<?xi32>",
                             kSize = "tensor<?xi8>", kHeads = "tensor<?xf32>",
                             kScales = "tensor<?x?xf32>", kSeed = "tensor<1xi64>",
                             kOrigin = "tensor<1xi32>", kTotal = "tensor<2xi32>";

  const AttentionSpec &spec;
  /// Whether operands are elements of 8 bits and scales.
  bool isScaled;
  StringRef element;
  /// The types of queries and keys, and of values; and the types of what they stand for.
  std::string q, v, wideQ, wideV;
  /// Of the output.
  std::string output;
};
} // namespace

Status checkSpec(const AttentionSpec &spec) {
  auto fail = [](std::string message) {
    return Status{StatusCode::InvalidArgument, std::move(message), ""};
  };
  if (spec.pageSize < 0)
    return fail("pageSize: expected a number of keys from 0 on, got " +
                std::to_string(spec.pageSize));
  if (spec.isRagged && (spec.pageSize || spec.hasLengths || spec.hasDocuments))
    return Status{StatusCode::InvalidArgument,
                  "isRagged: expected no pages, lengths or documents beside sequences, got one of "
                  "them",
                  "write the source with attn.ragged and attn.paged"};
  for (auto [name, placement] :
       {std::pair("rowPositions", spec.rowPositions), {"keyPositions", spec.keyPositions}})
    if (placement != Positions::Own && (spec.pageSize || spec.hasLengths || spec.isRagged))
      return Status{StatusCode::InvalidArgument,
                    std::string(name) + ": expected no pages, lengths or sequences beside "
                                        "positions, got one of them",
                    "write the source with #attn.positions"};
  if (spec.isGradient && (spec.pageSize || spec.isRagged))
    return fail("isGradient: expected keys and values in one piece, got pages or sequences");
  if (spec.isGradient && isScaled(spec.type))
    return fail("isGradient: expected f16, bf16 or f32, got " + std::string(getName(spec.type)));
  // The variants refuse these numbers too, but 0 is none here.
  if (!(spec.softcap >= 0))
    return fail("softcap: expected a number from 0 on, got " + std::to_string(spec.softcap));
  if (!(spec.dropout >= 0 && spec.dropout <= 1))
    return fail("dropout: expected a probability from 0 to 1, got " + std::to_string(spec.dropout));
  return {};
}

std::string getSource(const AttentionSpec &spec) { return Writer(spec).write(); }

} // namespace attn
