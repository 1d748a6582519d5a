//===- Pictures.h - a call of the program, as the page shows it -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNTRANSLATE_PICTURES_H
#define ATTN_LIB_TOOLS_ATTNTRANSLATE_PICTURES_H

#include "lib/Tools/AttnRun/Options.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// Which pairs of rows and keys a mask keeps, by tiles.
struct MaskTiles {
  int64_t rows = 0, keys = 0, tileRows = 64, tileKeys = 64;
  /// A character for each tile: '0' keeps nothing, '1' some pairs, '2' all of them.
  std::vector<std::string> lines;
  /// The share of pairs that are kept.
  double density = 0;
};

/// Of one call. `notes` say why a picture is not there; an attention without a mask has none.
struct Pictures {
  std::string shape;
  std::optional<MaskTiles> mask;
  /// SVG: one block of the kernel on a GPU.
  std::string timeline;
  /// The model's prediction, by key.
  std::vector<std::pair<std::string, std::string>> predicted;
  std::vector<std::string> notes;
};

/// Of the program `text` from `options.file`, for a call of `options.shape`, on the simulated GPU
/// or on the CPU, whose calls have no timeline. Without a shape from `hasShape`, some usual one.
Pictures makePictures(const mlir::DialectRegistry &registry, llvm::StringRef text,
                      RunOptions options, bool hasShape);

/// Tiles that somebody else has counted, of the mask of a call whose tensors are not here: JSON
/// {"rows", "keys", "tile": [rows, keys], "lines": [text], "density"}.
llvm::Expected<MaskTiles> readMaskTiles(llvm::StringRef path);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNTRANSLATE_PICTURES_H
