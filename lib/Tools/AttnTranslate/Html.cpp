//===- Html.cpp - the rooms of a program as one page --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file to send to somebody: no address of another is in it. The stages of gradients are 3 MB of
// text, so the page holds them compressed, and the browser opens and marks the two that are shown.
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/AttnTranslate/Html.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/JSON.h"

using namespace attn;
using namespace llvm;

static constexpr StringLiteral kStyle =
#include "page.css.inc"
    ;
static constexpr StringLiteral kScript =
#include "page.js.inc"
    ;

static std::string escape(StringRef text) {
  std::string escaped;
  raw_string_ostream os(escaped);
  printHTMLEscaped(text, os);
  return escaped;
}

static void writeMask(json::OStream &json, const MaskTiles &mask) {
  json.attributeObject("mask", [&] {
    json.attribute("rows", mask.rows);
    json.attribute("keys", mask.keys);
    json.attribute("tile", json::Array{mask.tileRows, mask.tileKeys});
    json.attribute("lines", json::Array(mask.lines));
    json.attribute("density", mask.density);
  });
}

static void writePictures(json::OStream &json, const Pictures &pictures) {
  json.attributeObject("pictures", [&] {
    json.attribute("shape", pictures.shape);
    if (pictures.mask)
      writeMask(json, *pictures.mask);
    json.attribute("timeline", json::fixUTF8(pictures.timeline));
    json.attributeArray("predicted", [&] {
      for (const auto &[key, text] : pictures.predicted)
        json.value(json::Array{key, json::fixUTF8(text)});
    });
    json.attributeArray("notes", [&] {
      for (const std::string &note : pictures.notes)
        json.value(json::fixUTF8(note));
    });
  });
}

static std::string writeJson(const Page &page) {
  std::string text;
  raw_string_ostream os(text);
  json::OStream json(os);
  json.object([&] {
    json.attribute("decisions", json::fixUTF8(page.decisions));
    json.attribute("stopped", json::fixUTF8(page.stopped));
    if (page.pictures)
      writePictures(json, *page.pictures);
    json.attributeArray("rooms", [&] {
      for (const Stage &stage : page.stages)
        json.object([&] {
          json.attribute("number", stage.number);
          json.attribute("name", stage.name);
          json.attribute("sentence", stage.sentence);
          json.attribute("text", json::fixUTF8(stage.text));
          json.attributeArray("links", [&] {
            for (const auto &link : stage.links)
              json.array([&] {
                for (unsigned line : link)
                  json.value(line);
              });
          });
        });
    });
  });
  return text;
}

/// Base 64 of zlib's form, or of the text where LLVM was built without it.
static std::string pack(const std::string &text, bool isCompressed) {
  if (!isCompressed)
    return encodeBase64(text);
  SmallVector<uint8_t, 0> packed;
  compression::zlib::compress(arrayRefFromStringRef(text), packed,
                              compression::zlib::BestSizeCompression);
  return encodeBase64(packed);
}

void attn::writeHtml(raw_ostream &os, const Page &page) {
  bool isCompressed = compression::zlib::isAvailable();
  os << "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
     << "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
     << "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" << escape(page.title)
     << "</title>\n<style>" << kStyle << "</style>\n<body>\n<header>\n<h1>" << escape(page.title)
     << "</h1>\n</header>\n<noscript>This page needs JavaScript, and nothing else.</noscript>\n"
     << "<script type=\"text/plain\" id=\"data\" data-form=\""
     << (isCompressed ? "deflate" : "text") << "\">" << pack(writeJson(page), isCompressed)
     << "</script>\n<script>" << kScript << "</script>\n</body>\n</html>\n";
}
