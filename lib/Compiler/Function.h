//===- Function.h - a compiled function and what its calls must look like
//----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_COMPILER_FUNCTION_H
#define ATTN_COMPILER_FUNCTION_H

#include "attn/Compiler.h"
#include "lib/Target/CPU/Compile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <mutex>

namespace attn {

/// The letters of dimensions. `None` is a dimension that the source says nothing about.
enum class Letter : uint8_t { B, H, Hkv, M, N, D, Dv, None };
constexpr size_t kNumLetters = size_t(Letter::None);
llvm::StringRef getName(Letter letter);

/// One dimension of an argument or result.
struct DimRule {
  Letter letter = Letter::None;
  /// A tensor that a region reads at the letter's positions need only be as large.
  bool isAtLeast = false;
};
using DimRules = llvm::SmallVector<DimRule, 4>;

/// What a call is checked against; arguments first, results after them.
struct CallRules {
  struct Value {
    std::string name;
    DataType type;
    bool isScalar = false, isResult = false;
    llvm::SmallVector<int64_t, 4> shape;
    DimRules dims;
  };
  llvm::SmallVector<Value, 8> values;
  size_t numArguments = 0;
};

/// The words of a call in the order of the lowered function.
using CallWords = llvm::SmallVector<uint64_t, 64>;

/// Checks every argument and flattens them. `words` is of no use when the status is not Ok.
Status flattenArguments(const CallRules &rules, LaunchArguments arguments, CallWords &words);

/// Finds letters by the use of arguments and results in `attn.attention`, one list for each value.
llvm::SmallVector<DimRules> findLetters(mlir::func::FuncOp function);

/// A parsed source with the entry that the options name.
struct ParsedSource {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
  llvm::SmallVector<std::string> argumentNames;
};

/// Parses and verifies. Messages start with the place.
Result<ParsedSource> parseSource(mlir::MLIRContext &context, std::string_view source,
                                 const CompileOptions &options);

/// The machine that the options ask for.
Result<HostInfo> resolveHost(const CompileOptions &options);

/// Compiles, whatever the cache holds.
Result<CompiledFunction> compileUncached(std::string_view source, const CompileOptions &options);

struct CompiledFunction::State {
  FunctionInfo info;
  CallRules rules;
  unsigned threads = 0;
  std::unique_ptr<CompiledKernel> kernel;
  /// Generated code is called from one thread at a time.
  std::mutex mutex;
};

} // namespace attn

#endif // ATTN_COMPILER_FUNCTION_H
