//===- Html.h - the rooms of a program as one page ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNTRANSLATE_HTML_H
#define ATTN_LIB_TOOLS_ATTNTRANSLATE_HTML_H

#include "lib/Tools/AttnTranslate/Pictures.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace attn {

/// A program at one door.
struct Stage {
  unsigned number;
  std::string name, sentence, text;
  /// A line of the text, counted from 1, and then the lines of the stage before that it was made
  /// of. Lines of which nothing is known are not there.
  // NOLINTNEXTLINE(readability-redundant-member-init): others may leave it out.
  std::vector<llvm::SmallVector<unsigned, 2>> links = {};
};

struct Page {
  std::string title;
  /// The compiler's choices, a line each.
  std::string decisions;
  /// Why there are no more stages; empty: they are all there.
  std::string stopped;
  std::vector<Stage> stages;
  std::optional<Pictures> pictures;
};

/// One file for a browser, which asks for no other.
void writeHtml(llvm::raw_ostream &os, const Page &page);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNTRANSLATE_HTML_H
