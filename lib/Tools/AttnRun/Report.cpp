//===- Report.cpp - what attn-run prints ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace attn {

void Report::addFinding(const sim::Finding &finding) {
  raw_string_ostream stream(findings.emplace_back());
  finding.print(stream);
}

bool Report::isChecked() const {
  return !findings.empty() || (counts && counts->proof) ||
         any_of(results, [](const ResultReport &result) { return result.error.has_value(); });
}

bool Report::isRight() const {
  if (counts && counts->proof && !counts->proof->holds())
    return false;
  if (!findings.empty())
    return false;
  return all_of(results, [](const ResultReport &result) {
    return !result.error || result.error->isWithin(result.tolerance);
  });
}

static void printError(raw_ostream &os, const ResultReport &result) {
  const Comparison &error = *result.error;
  os << format("max relative %.2e (at most %.0e)  max absolute %.2e  rms %.2e", error.maxRelative,
               result.tolerance, error.maxAbsolute, error.rms);
  if (error.numNaN)
    os << "  " << error.numNaN << " NaN";
  if (error.numUnwritten)
    os << "  " << error.numUnwritten << " never written";
  if (!error.isWithin(result.tolerance))
    os << "  worst at element " << error.worst;
}

static void printCounts(raw_ostream &os, const InterpreterCounts &counts) {
  auto line = [&](StringRef key) -> raw_ostream & { return os << left_justify(key, 10); };
  line("tiles") << counts.tiles << " visited, " << counts.maskedTiles << " masked, "
                << counts.unmaskedTiles << " unmasked\n";
  line("masks") << counts.maskedElements << " elements evaluated\n";
  line("waste") << counts.emptyTiles << " tiles keep nothing, " << counts.needlessMasks
                << " masked tiles keep everything\n";
  if (!counts.proof)
    return;
  const MaskProof &proof = *counts.proof;
  line("proof") << proof.droppedInUnmasked << " dropped in unmasked tiles, " << proof.keptOutside
                << " kept outside, " << proof.disagreements << " masked otherwise, "
                << proof.revisited << " visited twice\n";
  if (!proof.first.empty())
    line("first") << proof.first << '\n';
}

static void printCounts(json::OStream &json, const InterpreterCounts &counts) {
  json.attributeObject("counts", [&] {
    json.attribute("tiles", counts.tiles);
    json.attribute("masked_tiles", counts.maskedTiles);
    json.attribute("unmasked_tiles", counts.unmaskedTiles);
    json.attribute("masked_elements", counts.maskedElements);
    json.attribute("empty_tiles", counts.emptyTiles);
    json.attribute("needless_masks", counts.needlessMasks);
  });
  if (!counts.proof)
    return;
  json.attributeObject("proof", [&] {
    json.attribute("dropped_in_unmasked", counts.proof->droppedInUnmasked);
    json.attribute("kept_outside", counts.proof->keptOutside);
    json.attribute("disagreements", counts.proof->disagreements);
    json.attribute("revisited", counts.proof->revisited);
    json.attribute("holds", counts.proof->holds());
  });
}

void Report::printText(raw_ostream &os) const {
  auto line = [&](StringRef key) -> raw_ostream & { return os << left_justify(key, 10); };
  line("kernel") << '@' << entry << " of " << file << '\n';
  if (counts || !lines.empty() || !findings.empty())
    line("device") << device << '\n';
  else
    line("device") << device << ", " << numThreads << (numThreads == 1 ? " thread, " : " threads, ")
                   << f32Lanes << " lanes of f32\n";
  if (!schedule.empty())
    line("schedule") << schedule << '\n';
  if (!letters.empty()) {
    line("shape");
    StringRef separator = "";
    for (StringRef letter : {"B", "H", "Hkv", "M", "N", "D", "Dv"})
      if (auto found = letters.find(letter.str()); found != letters.end()) {
        os << separator << letter << '=' << found->second;
        separator = " ";
      }
    os << (isRowsFirst ? "  layout=bshd\n" : "\n");
  }
  line("seed") << seed << '\n';
  line("compile") << format("%.1f ms (passes %.1f, LLVM %.1f)\n", passesMs + llvmMs, passesMs,
                            llvmMs);
  line("time") << format("%.3f ms", timeMs);
  if (numRuns > 1)
    os << format(" (median of %lld runs, fastest %.3f)", static_cast<long long>(numRuns),
                 fastestMs);
  os << '\n';
  if (flops && timeMs > 0)
    line("speed") << format("%.1f GFLOP/s", *flops / timeMs * 1e-6)
                  << (isWorkGuessed ? ", masked pairs included (--flops)\n" : "\n");
  for (const ResultReport &result : results) {
    line(result.name) << formatShape(result.shape) << ' ' << getName(result.kind);
    if (result.error) {
      os << "  ";
      printError(os, result);
    }
    os << '\n';
  }
  if (counts)
    printCounts(os, *counts);
  for (const auto &[key, text] : lines)
    line(key) << text << '\n';
  for (const std::string &finding : findings)
    os << finding;
  if (isChecked())
    line("verdict") << (isRight() ? "right\n" : "WRONG\n");
}

/// JSON has no infinity; null says that there is no number.
static json::Value toJson(double value) {
  return std::isfinite(value) ? json::Value(value) : json::Value(nullptr);
}

static void printResult(json::OStream &json, const ResultReport &result) {
  json.attribute("name", json::fixUTF8(result.name));
  json.attribute("type", getName(result.kind));
  json.attributeArray("shape", [&] {
    for (int64_t extent : result.shape)
      json.value(extent);
  });
  if (!result.error)
    return;
  json.attribute("max_relative", toJson(result.error->maxRelative));
  json.attribute("max_absolute", toJson(result.error->maxAbsolute));
  json.attribute("rms", toJson(result.error->rms));
  json.attribute("nan", result.error->numNaN);
  json.attribute("unwritten", result.error->numUnwritten);
  json.attribute("worst", result.error->worst);
  json.attribute("tolerance", result.tolerance);
  json.attribute("right", result.error->isWithin(result.tolerance));
}

void Report::printJson(raw_ostream &os) const {
  json::OStream json(os, 2);
  json.object([&] {
    json.attribute("file", json::fixUTF8(file));
    json.attribute("entry", json::fixUTF8(entry));
    json.attribute("device", device);
    json.attribute("threads", numThreads);
    json.attribute("f32_lanes", f32Lanes);
    if (!schedule.empty())
      json.attribute("schedule", schedule);
    json.attributeObject("shape", [&] {
      for (const auto &[letter, extent] : letters)
        json.attribute(letter, extent);
    });
    json.attribute("layout", isRowsFirst ? "bshd" : "bhsd");
    json.attribute("seed", seed);
    json.attribute("passes_ms", passesMs);
    json.attribute("llvm_ms", llvmMs);
    json.attribute("time_ms", timeMs);
    json.attribute("fastest_ms", fastestMs);
    json.attribute("runs", numRuns);
    if (flops) {
      json.attribute("flops", *flops);
      json.attribute("gflops", toJson(*flops / timeMs * 1e-6));
    }
    json.attributeArray("results", [&] {
      for (const ResultReport &result : results)
        json.object([&] { printResult(json, result); });
    });
    if (counts)
      printCounts(json, *counts);
    if (!lines.empty())
      json.attributeObject("simulator", [&] {
        for (const auto &[key, text] : lines)
          json.attribute(key, text);
      });
    if (!findings.empty())
      json.attributeArray("findings", [&] {
        for (const std::string &finding : findings)
          json.value(json::fixUTF8(finding));
      });
    if (isChecked())
      json.attribute("right", isRight());
  });
  os << '\n';
}

} // namespace attn
