//===- Mutator.h - changes the structure of a program -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_MUTATOR_H
#define ATTN_TEST_FUZZ_MUTATOR_H

#include "mlir/IR/Builders.h"
#include "test/Fuzz/Corpus.h"
#include "test/Fuzz/Rng.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn::fuzz {

/// Called with the text of each attribute or type before it is parsed, and with none after it:
/// parsing is under test too.
using ParseWatcher = llvm::function_ref<void(llvm::StringRef text, bool isType)>;

/// One program while it is changed.
struct Subject {
  mlir::ModuleOp module;
  const Corpus &corpus;
  Rng &rng;
  ParseWatcher watch;
  /// All operations but the module.
  std::vector<mlir::Operation *> ops;

  Subject(mlir::ModuleOp module, const Corpus &corpus, Rng &rng, ParseWatcher watch);
  mlir::Operation *pickOp() { return rng.pick(ops); }
};

/// Changes one thing in the module. The result may be invalid IR, to be verified by the caller;
/// false if there was nothing to change.
bool mutate(mlir::ModuleOp module, const Corpus &corpus, Rng &rng, ParseWatcher watch);

/// Whether upstream breaks on the program, in a function or a text that has no name to excuse it
/// by.
bool breaksUpstream(mlir::ModuleOp module);

/// A value of the type that is visible before `op`, or a new one; null where none can be made.
mlir::Value getValue(mlir::Operation *op, mlir::Type type, Rng &rng);

/// Erases an op, whose results others stand in for; false if it cannot be missed.
bool eraseOp(mlir::Operation *op, Rng &rng);

/// The kinds of changes; each returns false where it does not apply.
/// Operations: operands, order, copies, nesting (MutateOps.cpp).
bool replaceOperand(Subject &subject);
bool eraseAnyOp(Subject &subject);
bool duplicateOp(Subject &subject);
bool moveOp(Subject &subject);
bool wrapOp(Subject &subject);
bool insertScalarOp(Subject &subject);
bool changeSymbol(Subject &subject);
bool addArgument(Subject &subject);
/// Attributes and types, through their text (MutateTypes.cpp).
bool changeAttribute(Subject &subject);
bool takeAttribute(Subject &subject);
bool changeConstant(Subject &subject);
bool changeExtent(Subject &subject);
bool changeElement(Subject &subject);
bool changeType(Subject &subject);
/// Parts of other programs (MutateSplice.cpp).
bool spliceOp(Subject &subject);
bool spliceRegion(Subject &subject);
bool spliceFunction(Subject &subject);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_MUTATOR_H
