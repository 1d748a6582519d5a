//===- Source.cpp - the text that operators take, and the functions written from it --------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "Source.h"
#include "Json.h"
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>
#include <stdexcept>

using namespace attn_torch;

static constexpr std::string_view kPieces = "// pieces ";
static const std::string kRows = "tensor<?x?x?xf32>", kSinkType = "tensor<?xf32>";
static const std::string kNames[] = {"query", "key", "value", "sink"};

Source::Source(const std::string &text) {
  size_t begin = text.rfind(kPieces);
  if (begin == std::string::npos)
    throw std::invalid_argument("expected '// pieces'");
  Json pieces = Json::read(std::string_view(text).substr(begin + kPieces.size()));
  const Json &problem = pieces["problem"];
  type = problem["type"].text();
  // Texts of older versions do not say it.
  const Json *output = problem.find("output");
  outputType = output && !output->text().empty() ? output->text() : type;
  headDim = problem["head_dim"].integer();
  valueDim = problem["value_dim"].integer();
  hasScale = problem["has_scale"].isTrue();
  hasSink = problem["has_sink"].isTrue();
  dropout = problem["dropout"].real();
  if (const Json &named = problem["causal"]; !named.isNull())
    causal = named.text();
  if (const Json &bounds = problem["window"]; !bounds.isNull())
    window.emplace(bounds.elements().at(0).integer(), bounds.elements().at(1).integer());
  // Texts of earlier versions have none.
  if (const Json *named = problem.find("positions"); named && !named->isNull())
    positions = named->texts();
  captures = pieces["captures"].texts();
  before = pieces["before"].texts();
  regions = pieces["regions"].texts();
  for (const Json &option : pieces["options"].elements())
    options.emplace_back(option.elements().at(0).text(), option.elements().at(1).text());
  for (const Json &given : pieces["given"].elements()) {
    least.emplace_back();
    for (const Json &extent : given.elements().at(5).elements())
      least.back().push_back(extent.integer());
  }
  if (valueDim <= 0 || least.size() != captures.size())
    throw std::invalid_argument("expected columns, and as many captured tensors as are given");
}

//===----------------------------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------------------------===//

static std::string join(const std::vector<std::string> &parts, const char *between) {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i)
    all += (i ? between : "") + parts[i];
  return all;
}

static bool isWordLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Whether a line names one of these values.
static bool namesOneOf(const std::string &line, const std::set<std::string> &values) {
  for (size_t i = line.find('%'); i != std::string::npos; i = line.find('%', i + 1)) {
    size_t end = i + 1;
    while (end < line.size() && isWordLetter(line[end]))
      ++end;
    if (values.count(line.substr(i, end - i)))
      return true;
  }
  return false;
}

std::string Source::queryType() const {
  return "tensor<?x?x?x" + std::to_string(headDim) + "x" + type + ">";
}

std::string Source::valueType() const {
  return "tensor<?x?x?x" + std::to_string(valueDim) + "x" + type + ">";
}

/// Of the output.
std::string Source::resultType() const {
  return "tensor<?x?x?x" + std::to_string(valueDim) + "x" + outputType + ">";
}

/// Captures are "%name: type {attribute}".
std::string Source::captureType(size_t index) const {
  const std::string &capture = captures[index];
  size_t colon = capture.find(": ");
  if (colon == std::string::npos)
    throw std::invalid_argument("expected a captured tensor with its type");
  std::string rest = capture.substr(colon + 2);
  return rest.substr(0, rest.find(" {"));
}

std::string Source::captureName(size_t index) const {
  return captures[index].substr(0, captures[index].find(": "));
}

/// tensor<?x?xbf16> as tensor<?x?xf32>.
static std::string widen(const std::string &type) {
  size_t last = type.rfind('x');
  // A 0-d tensor has no x; one of the letters may be in the type itself.
  return last == std::string::npos ? "tensor<f32>" : type.substr(0, last) + "xf32>";
}

std::string Source::writeVariants() const {
  std::vector<std::string> variants;
  // Of captured tensors the last ones are read by variants: positions, M and N, and the seed.
  size_t numRead = dropout != 0;
  if (!positions.empty()) {
    variants.push_back("#attn.positions<" + join(positions, ", ") + ">");
    numRead += 1 + positions.size() - std::count(positions.begin(), positions.end(), "own");
  }
  if (captures.size() < numRead)
    throw std::invalid_argument("expected the tensors that variants read");
  if (!causal.empty())
    variants.push_back("#attn.causal<" + causal + ">");
  if (window)
    variants.push_back("#attn.window<" + std::to_string(window->first) + ", " +
                       std::to_string(window->second) + ", bottom_right>");
  if (dropout != 0) {
    char number[64];
    std::snprintf(number, sizeof(number), "%.17e", dropout);
    variants.push_back("#attn.dropout<" + std::string(number) + ">");
  }
  std::vector<std::string> names, types;
  for (size_t i = captures.size() - numRead; i < captures.size(); ++i) {
    names.push_back(captureName(i));
    types.push_back(captureType(i));
  }
  std::string text;
  if (numRead)
    text = " captures(" + join(names, ", ") + " : " + join(types, ", ") + ")";
  return variants.empty() ? "" : " variants [" + join(variants, ", ") + "]" + text;
}

std::string Source::writeOptional() const {
  return std::string(hasScale ? " scale(%scale)" : "") +
         (hasSink ? " sink(%sink : " + kSinkType + ")" : "");
}

bool Source::readsLow(bool isOnCPU) const {
  for (const std::string &line : regions) {
    size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && line.compare(first, 6, "score(") == 0)
      return true;
  }
  return isOnCPU;
}

//===----------------------------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------------------------===//

/// `readInside` says of which captured numbers there are gradients: functions read these
/// themselves, and other texts read numbers in front of the op.
std::string Source::writeFunction(const std::string &name, const std::vector<std::string> &last,
                                  const std::string &operation, const std::string &types,
                                  const std::string &names, const std::string &results,
                                  const std::vector<bool> &readInside) const {
  std::vector<std::string> arguments = {"%q: " + queryType(), "%k: " + queryType(),
                                        "%v: " + valueType()};
  if (hasScale)
    arguments.push_back("%scale: f32");
  if (hasSink)
    arguments.push_back("%sink: " + kSinkType);
  arguments.insert(arguments.end(), captures.begin(), captures.end());
  arguments.insert(arguments.end(), last.begin(), last.end());

  std::string moved, text = "func.func @" + name + "(" + join(arguments, ", ") + ") -> (";
  text += results + ") {\n";
  std::set<std::string> known;
  for (const std::string &line : before) {
    bool isMoved = namesOneOf(line.substr(std::min(line.find(" = "), line.size())), known);
    for (size_t i = 0; i < readInside.size(); ++i)
      isMoved |= readInside[i] &&
                 line.find("tensor.extract " + captureName(i) + "[]") != std::string::npos;
    if (isMoved)
      known.insert(line.substr(0, line.find(" = ")));
    (isMoved ? moved : text) += (isMoved ? "      " : "  ") + line + "\n";
  }
  text += "  " + operation + "\n";
  for (const std::string &line : regions)
    text += line + "\n" + (line.ends_with("{") ? moved : "");
  return text + "    : " + types + "\n  return " + names + " : " + results + "\n}\n";
}

std::string Source::writeForward(bool hasLow) const {
  std::string names = hasLow ? "%o, %lse, %lse_low" : "%o, %lse";
  std::string results = resultType() + ", " + kRows + (hasLow ? ", " + kRows : "");
  std::string operation =
      names + " = attn.attention %q, %k, %v" + writeVariants() + writeOptional();
  std::string types = queryType() + ", " + queryType() + ", " + valueType() + " -> " + results;
  return writeFunction("attention", {}, operation, types, names, results, {});
}

std::string Source::writeGradient(const Gradients &gradients) const {
  std::vector<std::string> last = {"%output: " + resultType(), "%lse: " + kRows};
  std::string operation = " = attn.attention_grad %q, %k, %v, %output, %lse, %d_output";
  operation += writeVariants();
  if (gradients.hasLow) {
    last.push_back("%lse_low: " + kRows);
    operation += " lse_low(%lse_low : " + kRows + ")";
  }
  last.push_back("%d_output: " + valueType());
  if (gradients.hasLseGradient) {
    last.push_back("%d_lse: " + kRows);
    operation += " d_lse(%d_lse : " + kRows + ")";
  }
  const std::string of[] = {queryType(), queryType(), valueType(), kSinkType};
  std::vector<std::string> names, results, named, given, givenTypes, wide;
  for (size_t i = 0; i < kNumNamed; ++i) {
    if (!gradients.wanted[i])
      continue;
    names.push_back("%d_" + kNames[i]);
    results.push_back(of[i]);
    named.push_back("d_" + kNames[i] + "(" + of[i] + ")");
  }
  std::vector<bool> readInside(gradients.wanted.begin() + kNumNamed, gradients.wanted.end());
  for (size_t i = 0; i < readInside.size(); ++i) {
    if (!readInside[i])
      continue;
    names.push_back("%d_" + std::to_string(i));
    given.push_back(captureName(i));
    givenTypes.push_back(captureType(i));
    wide.push_back(widen(captureType(i)));
    results.push_back(wide.back());
  }
  operation = join(names, ", ") + operation + writeOptional();
  std::string types = join({queryType(), queryType(), valueType(), resultType(), kRows}, ", ");
  types += ", " + valueType() + " -> " + join(named, " ");
  if (!given.empty()) {
    operation += " wrt(" + join(given, ", ") + " : " + join(givenTypes, ", ") + ")";
    types += " d_wrt(" + join(wide, ", ") + ")";
  }
  return writeFunction("gradient", last, operation, types, join(names, ", "), join(results, ", "),
                       readInside);
}
