//===- Corpus.h - the programs that mutation starts from --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_CORPUS_H
#define ATTN_TEST_FUZZ_CORPUS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace attn::fuzz {

struct CorpusProgram {
  /// "Dialect/Attn/ops.mlir:3", the third program of the file.
  std::string origin;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The passes that the file's RUN lines name: the rooms that the program belongs to.
  std::vector<std::string> passes;
  /// All operations but the module.
  std::vector<mlir::Operation *> ops;
};

/// What mutants are made of. In the order of the file names, so that a seed means the same mutants
/// wherever the same tests are.
struct Corpus {
  std::vector<CorpusProgram> programs;
  /// Every attribute by its name, and every type of a value, once.
  std::vector<mlir::NamedAttribute> attributes;
  std::vector<mlir::Type> types;
};

/// Reads all *.mlir under `directory`, and takes the programs of room 1 through the rooms for more.
/// Programs that do not parse and verify are left out.
Corpus loadCorpus(llvm::StringRef directory, mlir::MLIRContext &context);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_CORPUS_H
