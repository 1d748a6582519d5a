//===- LateInputs.h - values from outside that late ops take ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_LATEINPUTS_H
#define ATTN_LIB_TRANSFORMS_TILE_LATEINPUTS_H

#include "lib/Transforms/Tile/Delays.h"

namespace attn::tile {

/// The values that the ops take from outside: for each op its operands and then its captured
/// values. Null where they come from each other.
llvm::SmallVector<mlir::Value> getInputs(const LateOps &late);

/// A value from outside of the late ops.
struct LateInput {
  mlir::Type type;
  /// Its first place in the list of `getInputs` for any step.
  size_t position = 0;
  /// The value, if it is the same in all turns of all steps. Otherwise steps hand it on,
  mlir::Value common;
  /// in place of a result that the loops carry: the number of it among the carried,
  std::optional<unsigned> lent;
  /// or on its own: the number of it among those.
  std::optional<unsigned> added;
};

/// Those of a chain of steps, each once.
class LateInputs {
public:
  explicit LateInputs(llvm::ArrayRef<LateOps> steps);

  auto begin() const { return inputs.begin(); }
  auto end() const { return inputs.end(); }

  /// The number of the input at a position of `getInputs`; none: a late op makes the value.
  std::optional<unsigned> getNumberAt(size_t position) const { return numberAt[position]; }
  /// The number of the input that takes the place of the index-th carried result.
  std::optional<unsigned> findLent(size_t index) const;

private:
  void find(llvm::ArrayRef<LateOps> steps);
  void lendCarried(llvm::ArrayRef<LateOps> steps);

  llvm::SmallVector<LateInput> inputs;
  llvm::SmallVector<std::optional<unsigned>> numberAt;
};

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_LATEINPUTS_H
