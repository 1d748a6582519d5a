//===- MaskProof.h - visited tiles against the original mask ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_MASKPROOF_H
#define ATTN_LIB_INTERPRETER_MASKPROOF_H

#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/RegionProgram.h"
#include <map>

namespace attn {

/// The masks of the attn.attention ops of a function in room `problem` (variants expanded), and of
/// their gradients, with the values they capture in one call.
class OriginalMasks {
public:
  struct Attention {
    mlir::Operation *op = nullptr;
    /// B, H, M, N and the global position of the first element.
    int64_t sizes[4] = {}, origin[4] = {};
    /// None when everything is kept.
    std::optional<RegionProgram> mask;

    /// Whether (b, h, m, n + i) is kept, for the i-th of `keep`.
    llvm::Error evaluate(int64_t b, int64_t h, int64_t m, int64_t n,
                         llvm::MutableArrayRef<Lane> keep);
  };

  /// Runs `function` up to its attention ops; tensors that no mask reads need no data.
  static llvm::Expected<OriginalMasks> capture(mlir::func::FuncOp function,
                                               llvm::ArrayRef<RuntimeValue> arguments,
                                               const InterpreterOptions &options = {});

  llvm::Error add(Attention attention);
  llvm::MutableArrayRef<Attention> getAttentions() { return attentions; }

  /// The attention that the step `op` comes from. Passes keep locations, so it is the one at the
  /// location of `op` that runs over what `op` does; or the only one there is. Null when that does
  /// not tell.
  Attention *find(mlir::Operation *op);

private:
  std::vector<Attention> attentions;
};

/// Collects the tiles of a run, then compares them with the original masks.
class MaskProver {
public:
  explicit MaskProver(OriginalMasks &originals) : originals(originals) {}

  /// A tile of `op` at a global position; `mask` is its own region, bound, or null.
  llvm::Error visit(mlir::Operation *op, llvm::ArrayRef<int64_t> origin, int64_t rows, int64_t keys,
                    RegionProgram *mask);
  llvm::Expected<MaskProof> finish();

private:
  struct Tile {
    int64_t rowBegin, rowEnd, keyBegin, keyEnd;
    bool isMasked;
  };
  using Tiles = std::map<std::pair<int64_t, int64_t>, std::vector<Tile>>;

  void note(llvm::StringRef what, int64_t b, int64_t h, int64_t m, int64_t n);
  llvm::Error sweep(OriginalMasks::Attention &attention, int64_t b, int64_t h,
                    std::vector<Tile> &tiles);

  OriginalMasks &originals;
  /// By the attention and the coordinate that runs: the passes of a gradient visit everything once
  /// each.
  std::map<std::pair<OriginalMasks::Attention *, unsigned>, Tiles> visited;
  MaskProof proof;
};

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_MASKPROOF_H
