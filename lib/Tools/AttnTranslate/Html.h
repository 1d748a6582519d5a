//===- Html.h - the rooms of a program as one page ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNTRANSLATE_HTML_H
#define ATTN_LIB_TOOLS_ATTNTRANSLATE_HTML_H

#include "lib/Rooms/Rooms.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// A program as it leaves a room.
struct Stage {
  const RoomInfo *room;
  std::string text;
};

/// Writes a page that needs nothing else: all stages, of which one is shown at a time. Without
/// scripts all are.
void writeHtml(llvm::raw_ostream &os, llvm::StringRef title, llvm::ArrayRef<Stage> stages);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNTRANSLATE_HTML_H
