//===- Html.cpp - the rooms of a program as one page --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file to send to somebody: no address of another is in it. Values are marked as the browser
// shows a stage, not here: a page of eight rooms has ten thousands of them.
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/AttnTranslate/Html.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using llvm::StringRef;

static constexpr StringRef kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; color: #1f2937; background: #fff }
header { padding: 12px 24px; border-bottom: 1px solid #d1d5db; position: sticky; top: 0; background: #fff }
h1 { font-size: 18px; margin: 0 } h2 { font-size: 15px; margin: 0 0 4px }
p { margin: 0 0 12px; color: #4b5563 }
nav { display: flex; flex-wrap: wrap; gap: 4px; margin-top: 8px }
nav a { padding: 2px 10px; border-radius: 4px; text-decoration: none; color: #1d4ed8; background: #eff6ff }
nav a.shown { color: #fff; background: #1d4ed8 }
section { padding: 16px 24px; scroll-margin-top: 120px }
pre { font: 12px/1.5 ui-monospace, monospace; overflow-x: auto; background: #f9fafb; padding: 12px; margin: 0 }
.scripted section { display: none } .scripted section.shown { display: block }
pre a { color: #1d4ed8; cursor: pointer } pre a.same { background: #fde68a } pre i { color: #6b7280; font-style: normal }
)";

/// Shows one stage, by the page's fragment or the arrow keys, and marks equal values of it.
static constexpr StringRef kScript = R"(
const sections = [...document.querySelectorAll('section')], links = [...document.querySelectorAll('nav a')];
const escape = s => s.replace(/[&<>]/g, x => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[x]);
const mark = s => s.replace(/((?:\/\/|^;|[ \t];).*)$|(%[\w$.#-]+)|[&<>]/gm,
  (x, comment, value) => comment ? `<i>${escape(x)}</i>` : value ? `<a>${x}</a>` : escape(x));
function show() {
  const found = sections.findIndex(x => '#' + x.id === location.hash), shown = found < 0 ? 0 : found;
  sections.forEach((x, i) => x.classList.toggle('shown', i === shown));
  links.forEach((x, i) => x.classList.toggle('shown', i === shown));
  const text = sections[shown].querySelector('pre');
  if (!text.dataset.marked && text.textContent.length < 2e6) {
    text.innerHTML = mark(text.textContent);
    text.dataset.marked = 1;
  }
  return shown;
}
document.body.classList.add('scripted');
addEventListener('hashchange', show);
addEventListener('keydown', event => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], next = sections[show() + step];
  if (next) location.hash = next.id;
});
document.addEventListener('click', event => {
  if (!event.target.matches('pre a')) return;
  const all = [...event.target.closest('pre').querySelectorAll('a')], name = event.target.textContent;
  const isOn = event.target.classList.contains('same');
  all.forEach(x => x.classList.toggle('same', !isOn && x.textContent === name));
});
show();
)";

static std::string escape(StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  llvm::printHTMLEscaped(text, os);
  return escaped;
}

void attn::writeHtml(llvm::raw_ostream &os, StringRef title, llvm::ArrayRef<Stage> stages) {
  os << "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>" << escape(title)
     << "</title>\n<style>" << kStyle << "</style>\n<body>\n<header>\n<h1>" << escape(title)
     << "</h1>\n<nav>\n";
  for (const Stage &stage : stages)
    os << llvm::formatv("<a href=\"#{0}\">{1} {0}</a>\n", stage.room->name, stage.room->number);
  os << "</nav>\n</header>\n";
  for (const Stage &stage : stages)
    os << llvm::formatv(
              "<section id=\"{0}\">\n<h2>Room {1}: {0}</h2>\n<p>{2}; {3} lines</p>\n<pre>",
              stage.room->name, stage.room->number, escape(stage.room->sentence),
              StringRef(stage.text).count('\n'))
       << escape(stage.text) << "</pre>\n</section>\n";
  os << "<script>" << kScript << "</script>\n</body>\n</html>\n";
}
