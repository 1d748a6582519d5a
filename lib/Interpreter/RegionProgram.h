//===- RegionProgram.h - a score, mask or grad region, ready to run on rows -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_REGIONPROGRAM_H
#define ATTN_LIB_INTERPRETER_REGIONPROGRAM_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Interpreter/ScalarOps.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/SmallBitVector.h"

namespace attn {

/// A region of scalar ops and reads of captured tensors as a list of instructions on slots. A slot
/// has one lane for each of some consecutive keys, so that an instruction is decoded once for many
/// elements. Values that depend on no key are computed once for a row, and values that depend on no
/// position once.
class RegionProgram {
public:
  using LookupFn = llvm::function_ref<const RuntimeValue *(mlir::Value)>;

  static llvm::Expected<RegionProgram> compile(mlir::Region &region, bool exactConstants);

  /// Takes the values that the region captures. An error when one is unknown.
  llvm::Error bind(LookupFn lookup);

  /// Where the contributions to a captured tensor are added, of its shape, until the next `bind`.
  /// Without such a place they are not.
  void addContributionsInto(mlir::Value captured, TensorRef sums);

  /// The inputs of a grad region besides scores: the gradient of its result and the weight P of
  /// each key. A key without weight contributes nothing.
  struct Gradients {
    const Lane *lanes, *weights;
  };

  /// The region at (b, h, m, n) for `count` keys from n on. With a score argument, `lanes` holds
  /// the scores on entry; the results replace them. Factors of weights replace `factors` where the
  /// region has them.
  llvm::Error run(int64_t b, int64_t h, int64_t m, int64_t n, int64_t count, Lane *lanes,
                  std::optional<Gradients> gradients = std::nullopt, Lane *factors = nullptr);

private:
  /// Keys at a time: the slots of a usual region fit the first-level cache.
  static constexpr int64_t width = 256;
  enum class Stage { Once, Row, Key };
  enum class Kind { Scalar, Extract, Dim, Contribute };

  struct Instruction {
    Kind kind = Kind::Scalar;
    Stage stage = Stage::Once;
    ScalarOp scalar;
    /// Of Extract, Dim and Contribute: an index into `tensors`.
    unsigned tensor = 0;
    unsigned result = 0;
    llvm::SmallVector<unsigned, 4> operands;
    /// Of Extract and Contribute: a bit for each index that goes to the nearest element (s13).
    llvm::SmallBitVector clamped;
    mlir::Operation *op = nullptr;
  };
  struct Capture {
    mlir::Value value;
    bool isTensor = false;
    /// A slot, or an index into `tensors`.
    unsigned index = 0;
  };

  llvm::Expected<Instruction> compileOp(mlir::Operation &op, unsigned result);
  llvm::Expected<Instruction> compileContribution(ContributeOp op);
  static llvm::SmallBitVector findClamped(mlir::Value tensor, mlir::ValueRange indices);
  unsigned getSlot(mlir::Value value);
  unsigned getTensor(mlir::Value value);
  Lane *lanesOf(unsigned slot) { return storage.data() + slot * width; }
  void broadcast(unsigned slot, Lane value) { std::fill_n(lanesOf(slot), width, value); }
  llvm::Error runStage(Stage stage, int64_t count);
  llvm::Expected<int64_t> getPosition(const Instruction &instruction, const DenseTensor &tensor,
                                      llvm::ArrayRef<unsigned> indices, int64_t lane);
  llvm::Error extract(const Instruction &instruction, int64_t count);
  llvm::Error contribute(const Instruction &instruction, int64_t count);

  llvm::DenseMap<mlir::Value, unsigned> slots;
  llvm::SmallVector<Stage> stages;
  llvm::SmallVector<Capture> captures;
  llvm::SmallVector<Instruction> instructions;
  llvm::SmallVector<std::pair<unsigned, Lane>> constants;
  llvm::SmallVector<TensorRef> tensors;
  std::vector<Lane> storage;
  mlir::Region *region = nullptr;
  /// Of Contribute: where each of `tensors` has its sums, and the weights of the keys of a call.
  llvm::DenseMap<unsigned, TensorRef> sums;
  const Lane *weights = nullptr;
  /// The slots of b, h, m, n and, if there are such arguments, of the score and its gradient.
  unsigned positions[4] = {};
  std::optional<unsigned> score, gradient;
  unsigned yielded = 0;
  std::optional<unsigned> factor;
};

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_REGIONPROGRAM_H
