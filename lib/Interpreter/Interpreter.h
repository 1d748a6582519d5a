//===- Interpreter.h - runs the IR of rooms 1 to 3 without code generation --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// An oracle that shares no code with the lowerings: it reads the IR after any pass of rooms 1 to 3
// and computes in f64 what it says. Two stages of one function must agree to rounding, so the pass
// between them is at fault when they do not. It also counts which key tiles a function visits, and
// proves on a grid that no tile is visited in vain, masked in vain, or left out.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_INTERPRETER_H
#define ATTN_LIB_INTERPRETER_INTERPRETER_H

#include "lib/Interpreter/Value.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>
#include <string>

namespace attn {

class OriginalMasks;

/// The findings of `OriginalMasks` about a run. All counts must be 0. Elements are positions (b, h,
/// m, n).
struct MaskProof {
  /// In tiles without a mask region, though the original mask drops them.
  int64_t droppedInUnmasked = 0;
  /// In no tile, though the original mask keeps them.
  int64_t keptOutside = 0;
  /// In tiles with a mask region that differs from the original there.
  int64_t disagreements = 0;
  /// In two tiles.
  int64_t revisited = 0;
  /// The first violation, for a person to look at.
  std::string first;

  bool holds() const { return !droppedInUnmasked && !keptOutside && !disagreements && !revisited; }
};

/// Counts over one run. A tile is one execution of attn.online_attention.
struct InterpreterCounts {
  int64_t tiles = 0;
  /// With a mask region and without.
  int64_t maskedTiles = 0, unmaskedTiles = 0;
  /// Elements on which a mask region was evaluated.
  int64_t maskedElements = 0;
  /// Tiles that keep nothing: work for nothing.
  int64_t emptyTiles = 0;
  /// Tiles with a mask region that keep everything: masks for nothing.
  int64_t needlessMasks = 0;
  /// Set when there were original masks to prove against.
  std::optional<MaskProof> proof;
};

struct InterpreterOptions {
  /// Leaves out the numbers of attn ops: queries, keys and values may be tensors without data.
  bool countOnly = false;
  /// The masks of the same function in room `problem`, to prove the visited tiles against.
  OriginalMasks *proveAgainst = nullptr;
  /// Reads the f32 constants that attn-online-softmax introduces (log2(e), the default scale) as
  /// the real numbers that they stand for. Stages then agree to f64 rounding; without it to 1e-7.
  bool exactConstants = true;
  /// An error after so many operations: an scf.while may never end.
  int64_t maxOperations = 1'000'000'000;
};

struct InterpreterResult {
  std::vector<RuntimeValue> values;
  InterpreterCounts counts;
};

/// Runs a function. Everything that the interpreter cannot run, and everything undefined that it
/// meets (an element outside a tensor, a division by zero), is an error that names op and location.
llvm::Expected<InterpreterResult> interpret(mlir::func::FuncOp function,
                                            llvm::ArrayRef<RuntimeValue> arguments,
                                            const InterpreterOptions &options = {});

/// Tensors for the arguments of `function` that have no data, of these shapes (empty for scalars,
/// which must be given otherwise).
llvm::Expected<RuntimeValue> makeShapeOnly(mlir::Type type, llvm::ArrayRef<int64_t> shape);

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_INTERPRETER_H
