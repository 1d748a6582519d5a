//===- Timeline.cpp - what happened when ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Timeline.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace attn::sim {

std::string Timeline::getArgument(unsigned index) const {
  return index < arguments.size() ? arguments[index] : "argument " + std::to_string(index);
}

/// Roles first, then what they share, each in the order of appearance.
static std::vector<std::string> getTracks(ArrayRef<Timeline::Span> spans) {
  std::vector<std::string> tracks;
  for (const Timeline::Span &span : spans)
    if (!is_contained(tracks, span.track))
      tracks.push_back(span.track);
  auto isShared = [](StringRef track) {
    return track == "tensor" || track == "exp" || track == "stores" || track.starts_with("copies");
  };
  llvm::sort(tracks, [&](const std::string &a, const std::string &b) {
    return isShared(a) != isShared(b) ? !isShared(a) : a < b;
  });
  return tracks;
}

void Timeline::printTrace(raw_ostream &os) const {
  std::vector<std::string> tracks = getTracks(spans);
  json::OStream json(os);
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeArray("traceEvents", [&] {
      for (auto [index, track] : enumerate(tracks))
        json.object([&] {
          json.attribute("ph", "M");
          json.attribute("name", "thread_name");
          json.attribute("pid", 0);
          json.attribute("tid", int64_t(index));
          json.attributeObject("args", [&] { json.attribute("name", track); });
        });
      for (const Span &span : spans)
        json.object([&] {
          json.attribute("ph", "X");
          json.attribute("name", span.name);
          json.attribute("pid", 0);
          json.attribute("tid", int64_t(find(tracks, span.track) - tracks.begin()));
          json.attribute("ts", span.begin / clockGHz * 1e-3);
          json.attribute("dur", (span.end - span.begin) / clockGHz * 1e-3);
          json.attributeObject("args", [&] { json.attribute("at", json::fixUTF8(span.location)); });
        });
    });
  });
  os << '\n';
}

//===----------------------------------------------------------------------------------------===//
// The picture
//===----------------------------------------------------------------------------------------===//

/// On a ground of any colour.
static constexpr StringLiteral kWait = "#9ca3af\" fill-opacity=\"0.45";

/// A page has the picture in it, or shows it as an image: the names are its own.
static constexpr StringLiteral kStyle =
    "<style>.attn-timeline text { fill: #1f2937 } .attn-timeline .ground { fill: #fff }\n"
    ".attn-timeline .axis { opacity: 0.7 }\n"
    "@media (prefers-color-scheme: dark) { .attn-timeline text { fill: #e5e7eb } "
    ".attn-timeline .ground { fill: #111827 } }</style>\n";

static StringRef getColor(StringRef track, StringRef name) {
  if (name.starts_with("wait"))
    return kWait;
  if (track == "tensor")
    return name.ends_with("scores") ? "#3b6fb6" : "#76b041";
  if (track == "exp")
    return "#d9822b";
  if (track.starts_with("copies"))
    return "#8e6bbf";
  return track == "stores" ? "#5f5f9e" : "#e3b23c";
}

/// Neighbours of one colour become one: thousands of elementwise ops are a bar.
static std::vector<Timeline::Span> merge(ArrayRef<Timeline::Span> spans, double gap) {
  std::vector<Timeline::Span> merged;
  MapVector<StringRef, SmallVector<const Timeline::Span *>> byTrack;
  for (const Timeline::Span &span : spans)
    byTrack[span.track].push_back(&span);
  for (auto &[track, list] : byTrack) {
    llvm::sort(list, [](auto *a, auto *b) {
      return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    for (const Timeline::Span *span : list) {
      Timeline::Span *last =
          merged.empty() || merged.back().track != span->track ? nullptr : &merged.back();
      if (last && span->begin - last->end <= gap &&
          getColor(track, last->name) == getColor(track, span->name) &&
          !track.starts_with("copies"))
        last->end = std::max(last->end, span->end);
      else
        merged.push_back(*span);
    }
  }
  return merged;
}

void Timeline::printPicture(raw_ostream &os, double maxCycles) const {
  constexpr double left = 150, width = 1050, row = 22, top = 46;
  std::vector<std::string> tracks = getTracks(spans);
  double end = 1;
  for (const Span &span : spans)
    end = std::max(end, span.end);
  if (maxCycles > 0)
    end = std::min(end, maxCycles);
  double scale = width / end, height = top + row * double(tracks.size()) + 56;
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"attn-timeline\" "
                "viewBox=\"0 0 {0:F0} {1:F0}\" font-family=\"sans-serif\" font-size=\"12\">\n",
                left + width + 20, height);
  os << kStyle;
  os << formatv("<rect class=\"ground\" width=\"{0:F0}\" height=\"{1:F0}\"/>\n", left + width + 20,
                height);
  os << "<text x=\"10\" y=\"20\" font-size=\"14\">" << title << "</text>\n";
  std::pair<StringRef, StringRef> legend[] = {{"#3b6fb6", "scores"},       {"#76b041", "values"},
                                              {"#d9822b", "exponentials"}, {"#e3b23c", "other"},
                                              {"#8e6bbf", "copies"},       {kWait, "waits"}};
  double x = left + width - 660;
  for (auto [color, name] : legend) {
    os << formatv("<rect x=\"{0:F0}\" y=\"10\" width=\"12\" height=\"12\" fill=\"{1}\"/>"
                  "<text x=\"{2:F0}\" y=\"20\">{3}</text>\n",
                  x, color, x + 16, name);
    x += 112;
  }
  for (auto [index, track] : enumerate(tracks)) {
    double y = top + row * double(index);
    os << formatv("<text x=\"{0:F0}\" y=\"{1:F0}\" text-anchor=\"end\">{2}</text>\n", left - 8,
                  y + 14, track);
  }
  // Spans thinner than half a unit cannot be seen.
  for (const Span &span : merge(spans, 0.5 / scale)) {
    if (span.begin >= end)
      continue;
    double y = top + row * double(find(tracks, span.track) - tracks.begin());
    double length = std::max(0.5, (std::min(span.end, end) - span.begin) * scale);
    os << formatv("<rect x=\"{0:F1}\" y=\"{1:F0}\" width=\"{2:F1}\" height=\"{3:F0}\" "
                  "fill=\"{4}\"><title>{5}</title></rect>\n",
                  left + span.begin * scale, y, length, row - 5, getColor(span.track, span.name),
                  span.name);
  }
  double axis = top + row * double(tracks.size()) + 6;
  double step = 1000;
  while (end / step > 12)
    step *= 2;
  for (unsigned i = 0, count = unsigned(end / step); i <= count; ++i)
    os << formatv("<text x=\"{0:F1}\" y=\"{1:F0}\" text-anchor=\"middle\" class=\"axis\">{2:F0}"
                  "</text>\n",
                  left + i * step * scale, axis + 14, i * step);
  os << formatv(
      "<text x=\"{0:F0}\" y=\"{1:F0}\" class=\"axis\">cycles of one multiprocessor</text>\n", left,
      axis + 34);
  os << "</svg>\n";
}

Error Timeline::write(StringRef path) const {
  std::error_code code;
  raw_fd_ostream os(path, code, sys::fs::OF_Text);
  if (code)
    return createStringError("'" + path +
                             "': expected a file that can be written, got: " + code.message());
  if (path.ends_with(".svg"))
    printPicture(os);
  else
    printTrace(os);
  os.flush();
  if (!os.has_error())
    return Error::success();
  code = os.error();
  os.clear_error();
  return createStringError("'" + path + "': expected to write it, got: " + code.message());
}

} // namespace attn::sim
