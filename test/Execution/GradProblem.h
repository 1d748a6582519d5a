//===- GradProblem.h - gradients to test ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_GRADPROBLEM_H
#define ATTN_TEST_EXECUTION_GRADPROBLEM_H

#include "test/Execution/Problem.h"
#include "test/Execution/Sources.h"

namespace attn::test {

/// Whether the gradient of a sink is asked for.
bool hasSink(const Variant &variant);
/// Captured tensors whose gradients are checked.
std::vector<Capture> getTrained(const Variant &variant);
/// Whether gradients are given both parts of the log-sum-exp. On GPUs plain scores do without; with
/// the gradient of lse all do, so that both forms are seen.
bool hasLow(const Variant &variant, const Problem &problem);

/// The function of query, key, value, captures, d_output, d_lse, output, lse and perhaps lse_low.
/// `problem.withLse` says whether d_lse is an operand. Of sequences it makes no gradients of sinks
/// and captured tensors, and offsets and the most rows follow value.
std::string makeGradSource(const Variant &variant, const Problem &problem);

/// Query, key, value, captures, and the gradients of output and lse.
std::vector<Input> makeGradInputs(const Variant &variant, const Problem &problem, const Extents &e,
                                  uint64_t seed);
/// Adds output and lse of attention, rounded as a forward kernel does, and perhaps what lse lost.
void addAttention(CompiledKernel &attention, std::vector<Input> &inputs, const Problem &problem,
                  const Extents &e, bool withLow);
/// Poisoned arrays for d_query, d_key, d_value, perhaps d_sink, and gradients of captured tensors
/// among `inputs`.
std::vector<Array> allocateGradients(ElementKind kind, ElementKind rowKind, const Variant &variant,
                                     std::vector<Input> &inputs, const Problem &problem,
                                     const Extents &e, Memory memory);

/// The largest |x - r| / max(|r|, rms of its row, least): a row is a sum, whose terms are rounded.
/// Gradients that cancel, as all do where a row keeps one key, have nothing but rounding errors to
/// be relative to; inputs and so other gradients are near 1.
double getError(Array &x, Array &reference, double least);
/// The arithmetic is f32's, and so are results of f32. Those of 16 bits are rounded once, by half a
/// unit in the last place. Where factors are too, errors are those of attention's own output, which
/// has such a factor.
double getGradBound(const Variant &variant, const std::string &type, const Extents &e);
/// Errors of d_query, d_key and d_value are relative to this number or to a larger one. Where dP
/// and delta cancel, the rest is rounding of numbers that are near sqrt(Dv), and grows with the
/// square root of the number of terms that a gradient sums.
double getLeastGradient(const Problem &problem, int64_t numTerms);
/// By how much that number is larger for d_query (0) and d_key (1), as terms are: a gradient of a
/// score is multiplied by the factors of queries and keys, and by a key or a query.
double getLargeScale(const Variant &variant, std::vector<Input> &inputs, size_t result);

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_GRADPROBLEM_H
