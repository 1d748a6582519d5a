//===- Stages.cpp - a program at each door, and what became of its lines ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnTranslate/Stages.h"
#include "mlir/Transforms/LocationSnapshot.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace attn {

/// The lines that the location has at the door of that tag, or in the file for no tag.
static SmallVector<unsigned, 2> getLines(Location location, StringRef tag) {
  SmallVector<unsigned, 2> lines;
  location->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    auto place = named ? dyn_cast<FileLineColLoc>(named.getChildLoc()) : nullptr;
    if (tag.empty() && !named)
      place = dyn_cast<FileLineColLoc>(part);
    // A module that nobody wrote is at line 0.
    if (place && place.getLine() > 0 && (tag.empty() || named.getName() == tag))
      lines.push_back(place.getLine());
    return WalkResult::advance();
  });
  llvm::sort(lines);
  lines.erase(llvm::unique(lines), lines.end());
  return lines;
}

StageRecorder::StageRecorder(StringRef source, std::vector<Stage> &stages) : stages(stages) {
  stages.push_back({0, "source", "the file", source.str()});
}

void StageRecorder::visit(StringRef room, ModuleOp module) {
  const RoomInfo &info = getInfo(*symbolizeRoom(room));
  llvm::DenseMap<Operation *, SmallVector<unsigned, 2>> before;
  module->walk([&](Operation *op) { before[op] = getLines(op->getLoc(), last); });
  std::string text;
  llvm::raw_string_ostream os(text);
  // The tag of a file would be taken for that of a door.
  std::string tag = ("room " + room).str();
  generateLocationsFromIR(os, room, tag, module, OpPrintingFlags());
  add(info, std::move(text));
  llvm::DenseMap<unsigned, SmallVector<unsigned, 2>> links;
  module->walk([&](Operation *op) {
    for (unsigned line : getLines(op->getLoc(), tag))
      links[line].append(before[op]);
  });
  for (auto &[line, of] : links) {
    llvm::sort(of);
    of.erase(llvm::unique(of), of.end());
    if (of.empty())
      continue;
    stages.back().links.push_back({line});
    stages.back().links.back().append(of);
  }
  llvm::sort(stages.back().links);
  last = tag;
}

void StageRecorder::add(const RoomInfo &room, std::string text) {
  stages.push_back({room.number, room.name.str(), room.sentence.str(), std::move(text)});
}

} // namespace attn
