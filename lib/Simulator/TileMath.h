//===- TileMath.h - arithmetic on register tiles ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The inner loops of the simulator, on plain arrays: compiled with vectorization even where the
// rest of the build is not, and therefore free of MLIR. Numbers are as the hardware holds them: an
// element of a 16-bit type is the f32 that it rounds to.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_TILEMATH_H
#define ATTN_LIB_SIMULATOR_TILEMATH_H

#include <cstdint>

namespace attn::sim {

/// The element types of tiles. Integers of every width are 64-bit lanes.
enum class Number : uint8_t { F32, BF16, F16, F8E4M3FN, F8E5M2, Integer };

/// Ops with loops of their own; all others go through lib/Interpreter/ScalarOps.
enum class FastOp : uint8_t { None, Add, Sub, Mul, Div, Max, MaxNum, Neg, Fma, Exp2, Copy };

inline int getNumOperands(FastOp op) {
  return op == FastOp::Fma                                               ? 3
         : op == FastOp::Neg || op == FastOp::Exp2 || op == FastOp::Copy ? 1
                                                                         : 2;
}

/// Rounds to nearest, ties to even, in place.
void roundTo(Number number, float *values, int64_t count);

/// result[i] = op(in[0][i], ...), not rounded.
void runFast(FastOp op, float *result, const float *const *in, int64_t count);

/// A matrix in memory: element (i, j) at data[i * rowStride + j * columnStride].
struct Matrix {
  const float *data;
  int64_t rowStride, columnStride;
};

/// result (m x n, dense) += a (m x k) * b (k x n), accumulated in f32 in the order of k.
void multiply(float *result, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k);

/// result[i] = max or sum of row i; `parts` = 4 keeps the partial results of the four lanes that
/// share a row of an accumulator: part q combines the columns c with c / 2 mod 4 == q.
void reduceRows(float *result, const float *values, int64_t rows, int64_t columns, int64_t parts,
                bool isMax);

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_TILEMATH_H
