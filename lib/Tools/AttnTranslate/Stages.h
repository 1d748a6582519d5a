//===- Stages.h - a program at each door, and what became of its lines --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNTRANSLATE_STAGES_H
#define ATTN_LIB_TOOLS_ATTNTRANSLATE_STAGES_H

#include "lib/Rooms/Rooms.h"
#include "lib/Tools/AttnTranslate/Html.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Keeps a program at the doors that it passes. At each door, ops get the line that they have in
/// the text there as one more location, which passes hand on: at the next door it tells of what an
/// op was made.
class StageRecorder {
public:
  /// The program as its file says it is the stage before the first one, so that lines of the first
  /// room lead there.
  StageRecorder(llvm::StringRef source, std::vector<Stage> &stages);

  /// For the doors of a pipeline.
  void visit(llvm::StringRef room, mlir::ModuleOp module);
  /// For a program that passes no door.
  void add(const RoomInfo &room, std::string text);

private:
  std::vector<Stage> &stages;
  /// The tag of the locations of the door before; empty: those of the file.
  std::string last;
};

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNTRANSLATE_STAGES_H
