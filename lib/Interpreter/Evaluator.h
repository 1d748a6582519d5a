//===- Evaluator.h - the inside of the interpreter --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_EVALUATOR_H
#define ATTN_LIB_INTERPRETER_EVALUATOR_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/MaskProof.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {

struct GradientSums;
struct RowGradients;
struct RowScores;

/// The state of one run. `execute` is one switch over the ops, split over files by theme: control
/// flow in Evaluator.cpp, tensors in TensorOps.cpp, attention in AttentionOps.cpp, its gradients in
/// GradientOps.cpp and GradientSteps.cpp.
class Evaluator {
public:
  explicit Evaluator(const InterpreterOptions &options) : options(options) {
    if (options.proveAgainst)
      prover.emplace(*options.proveAgainst);
  }

  /// Makes attn.attention record its mask instead of being evaluated.
  void captureMasksInto(OriginalMasks *originals) { recorded = originals; }

  llvm::Expected<std::vector<RuntimeValue>> call(mlir::func::FuncOp function,
                                                 llvm::ArrayRef<RuntimeValue> arguments);
  /// The counts, with the proof.
  llvm::Expected<InterpreterCounts> finish();

private:
  /// The values of one call. Names are unique within a function, so nested regions share it.
  using Frame = llvm::DenseMap<mlir::Value, RuntimeValue>;
  using Values = llvm::SmallVector<RuntimeValue, 4>;
  using Indices = llvm::SmallVector<int64_t, 4>;

  /// The answer of a family of ops that has executed an op; false would pass the op on to the next
  /// family.
  static llvm::Expected<bool> done(llvm::Error error) {
    if (error)
      return std::move(error);
    return true;
  }
  template <typename R> llvm::Error setResults(mlir::Operation *op, R &&values, Frame &frame) {
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      if (llvm::Error error = set(op, result, value, frame))
        return error;
    return llvm::Error::success();
  }
  /// An op, or a turn of a loop.
  llvm::Error count(mlir::Operation *op);

  // Control flow.
  llvm::Error execute(mlir::Operation *op, Frame &frame);
  llvm::Expected<Values> runBlock(mlir::Block &block, llvm::ArrayRef<RuntimeValue> arguments,
                                  Frame &frame);
  llvm::Error executeFor(mlir::scf::ForOp op, Frame &frame);
  llvm::Error executeForall(mlir::scf::ForallOp op, Frame &frame);
  llvm::Error executeWhile(mlir::scf::WhileOp op, Frame &frame);
  llvm::Error executeScalar(mlir::Operation *op, Frame &frame);
  llvm::Error executeScalar(mlir::OpResult output, Frame &frame);
  llvm::Error executeAffine(mlir::Operation *op, mlir::AffineMap map, mlir::OperandRange operands,
                            Frame &frame);

  // Tensors. Each sets the op's results.
  llvm::Expected<bool> executeTensorOp(mlir::Operation *op, Frame &frame);
  llvm::Expected<int64_t> getPosition(mlir::Operation *op, const DenseTensor &tensor,
                                      mlir::OperandRange indices, Frame &frame);
  llvm::Error extract(mlir::tensor::ExtractOp op, Frame &frame);
  llvm::Error insert(mlir::tensor::InsertOp op, Frame &frame);
  llvm::Error extractSlice(mlir::tensor::ExtractSliceOp op, Frame &frame);
  llvm::Error insertSlice(mlir::Operation *op, mlir::Value source, const TensorRef &into,
                          const Slice &slice, Frame &frame);
  llvm::Expected<Slice> getSlice(mlir::OffsetSizeAndStrideOpInterface op, Frame &frame);
  llvm::Error fill(mlir::linalg::FillOp op, Frame &frame);
  llvm::Error generic(mlir::linalg::GenericOp op, Frame &frame);

  // Attention.
  llvm::Expected<bool> executeAttnOp(mlir::Operation *op, Frame &frame);
  llvm::Error attention(AttentionOp op, Frame &frame);
  llvm::Error recordMask(ScoredOpInterface op, llvm::ArrayRef<int64_t> origin, Frame &frame);
  llvm::Error onlineAttention(OnlineAttentionOp op, Frame &frame);
  llvm::Error countTile(AbsorbingOpInterface op, llvm::ArrayRef<int64_t> origin, int64_t rows,
                        int64_t keys, RegionProgram *mask, std::vector<Lane> &keep);
  llvm::Error normalize(NormalizeOp op, Frame &frame);
  llvm::Error merge(MergeOp op, Frame &frame);

  // Views.
  llvm::Error executeView(mlir::Operation *op, Frame &frame);
  /// Of so many keys, those that a row can keep where both are of sequences.
  int64_t countAvailable(ScoredOpInterface op, int64_t batch, int64_t row, int64_t keys,
                         Frame &frame);
  llvm::Error paged(PagedOp op, Frame &frame);
  llvm::Error ragged(RaggedOp op, Frame &frame);
  llvm::Error place(PlaceOp op, Frame &frame);
  llvm::Error scaled(ScaledOp op, Frame &frame);

  /// attn.append or attn.rotary.
  llvm::Error moveRows(mlir::Operation *op, Frame &frame);

  // Gradients.
  llvm::Expected<bool> executeGradOp(mlir::Operation *op, Frame &frame);
  llvm::Error attentionGrad(AttentionGradOp op, Frame &frame);
  llvm::Error rowDelta(RowDeltaOp op, Frame &frame);
  llvm::Error attentionGradDelta(AttentionGradDeltaOp op, Frame &frame);
  /// Delta of each row as attn.attention_grad_delta defines it, from `sums.delta`; without d_lse or
  /// a sink these are null.
  llvm::Expected<std::vector<double>> computeExactDelta(GradientSums &sums,
                                                        const DenseTensor *lseGradient,
                                                        const DenseTensor *sink, Frame &frame);
  template <typename OpT> llvm::Error readRows(OpT op, GradientSums &sums, Frame &frame);
  template <typename OpT> llvm::Error splitGrad(OpT op, Frame &frame);
  llvm::Error recordGradMask(ScoredOpInterface op, Frame &frame);
  llvm::Expected<bool> executeGradStep(mlir::Operation *op, Frame &frame);
  template <typename OpT> llvm::Error gradStep(OpT op, Frame &frame);
  llvm::Error gradRows(GradRowsOp op, Frame &frame);
  llvm::Error gradDeltaEnd(GradDeltaEndOp op, Frame &frame);
  llvm::Error gradEnd(GradEndOp op, Frame &frame);
  llvm::Error sinkGrad(AttentionGradOp op, llvm::ArrayRef<double> delta, Frame &frame);
  /// The natural logarithms of rows, of both parts where `low` is not null.
  std::vector<double> getLogarithms(const DenseTensor &lse, mlir::Value low, Frame &frame);
  /// The same of neg_lse2 and neg_low2.
  std::vector<double> getNegatedLogarithms(const DenseTensor &negLse2, mlir::Value negLow2,
                                           Frame &frame);
  llvm::Error setNegated(mlir::Operation *op, mlir::Value result, mlir::Value source, Frame &frame);
  /// s17 of the rows of `lse`, if the result `low` is not null.
  llvm::Error setLow(mlir::Operation *op, mlir::Value low, const DenseTensor &lse, Frame &frame);
  /// Computes and sets the gradients that are wanted, but that of the sink.
  llvm::Error sumGradients(GradientSums &sums, Frame &frame);
  /// P and dS of row number `row` of (B, H, M), whose query and keys `rows` has from then on.
  llvm::Expected<RowGradients> computeRow(GradientSums &sums, RowScores &rows, int64_t row,
                                          llvm::ArrayRef<int64_t> origin, Frame &frame);
  llvm::Error addRow(GradientSums &sums, RowScores &rows, int64_t row,
                     llvm::ArrayRef<int64_t> origin, Frame &frame);
  llvm::Error checkShapes(ScoredOpInterface op, Frame &frame);
  llvm::Expected<RowScores> getRowScores(ScoredOpInterface op, Frame &frame);
  llvm::Expected<RegionProgram *> getProgram(mlir::Region &region, Frame &frame);
  llvm::Expected<double> getScale(mlir::Operation *op, mlir::Value scale, int64_t headDim,
                                  Frame &frame);

  // Values. An op is named where it reads one that is missing or unknown.
  llvm::Expected<Lane> getLane(mlir::Operation *op, mlir::Value value, Frame &frame);
  llvm::Expected<int64_t> getIndex(mlir::Operation *op, mlir::OpFoldResult value, Frame &frame);
  llvm::Expected<double> getReal(mlir::Operation *op, mlir::Value value, Frame &frame);
  llvm::Expected<Indices> getIndices(mlir::Operation *op, llvm::ArrayRef<mlir::OpFoldResult> values,
                                     Frame &frame);
  const TensorRef &getTensor(mlir::Value value, Frame &frame) {
    return frame.find(value)->second.getTensor();
  }
  /// A new tensor for a result; floats have no data when only counting.
  llvm::Expected<TensorRef> allocate(mlir::Operation *op, mlir::Type type,
                                     llvm::ArrayRef<int64_t> shape, bool hasData = true);
  /// Checks `value` against the static type and sets it.
  llvm::Error set(mlir::Operation *op, mlir::Value result, RuntimeValue value, Frame &frame);

  InterpreterOptions options;
  InterpreterCounts counts;
  std::optional<MaskProver> prover;
  OriginalMasks *recorded = nullptr;
  llvm::DenseMap<mlir::Value, ScalarOp> scalarOps;
  llvm::DenseMap<mlir::Region *, std::unique_ptr<RegionProgram>> programs;
  int64_t numOperations = 0;
  int callDepth = 0;
};

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_EVALUATOR_H
