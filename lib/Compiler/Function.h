//===- Function.h - a compiled function and what its calls must look like -===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_FUNCTION_H
#define ATTN_LIB_COMPILER_FUNCTION_H

#include "attn/Compiler.h"
#include "lib/Analysis/Extents/FindExtents.h"
#include "lib/Plan/Plan.h"
#include "lib/Schedule/Schedule.h"
#include "lib/Target/CPU/Compile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace attn {

/// The rules of a function: its values in order, with names of arguments.
CallRules makeRules(const KernelSignature &signature, llvm::ArrayRef<std::string> names,
                    const FunctionExtents &extents);
/// The same rules as a user is told of them.
FunctionInfo describe(const CallRules &rules);

/// The words of a call in the order of the lowered function.
using CallWords = llvm::SmallVector<uint64_t, 64>;

/// Checks every argument and flattens them. `words` is of no use when the status is not Ok.
Status flattenArguments(const CallRules &rules, LaunchArguments arguments, CallWords &words);

/// Checks every argument and adds those that are numbers to `scalars`, one word each, in order.
Status checkArguments(const CallRules &rules, LaunchArguments arguments,
                      llvm::SmallVectorImpl<uint64_t> &scalars);
/// The part of it that needs no memory: count, types and extents by themselves.
Status checkShapes(const CallRules &rules, LaunchArguments arguments);
/// Of one that is a tensor.
Status checkShape(const CallRules::Value &value, const LaunchArgument &argument);

/// Calls `run` with all arguments, or with at most `maxBatches` of the batches at a time. The
/// arguments have passed checkArguments.
Status runInSlices(const CallRules &rules, LaunchArguments arguments,
                   llvm::function_ref<Status(LaunchArguments)> run);

/// A parsed source with the entry that the options name.
struct ParsedSource {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
  llvm::SmallVector<std::string> argumentNames;
  FunctionExtents extents;
};

/// Parses and verifies, and refuses a function whose calls could not be checked. Messages start
/// with the place.
Result<ParsedSource> parseSource(mlir::MLIRContext &context, std::string_view source,
                                 const CompileOptions &options);

/// Calls a function that was compiled for the processor.
Status runOnHost(const CompiledFunction::State &state, LaunchArguments arguments);

/// Whether numbers among the options are in range.
Status checkOptions(const CompileOptions &options);

/// The words of the schedule that the options say.
Overrides getOverrides(const CompileOptions &options);

/// The machine that the options ask for.
Result<HostInfo> resolveHost(const CompileOptions &options);

/// The GPU that a function for CUDA is loaded onto; NoDriver or NoDevice without one.
Result<int> resolveOrdinal(const CompileOptions &options);

/// A decision that a pass told of, by its name: "mask-tiles", "keeps n < m1".
struct PassRemark {
  std::string name, text;
};

/// Sees a module at each door of its compilation, and the remarks of the passes up to there.
using DoorObserver = llvm::function_ref<void(llvm::StringRef room, mlir::ModuleOp module,
                                             llvm::ArrayRef<PassRemark> remarks)>;

/// Compiles or takes from disk, whatever this process compiled before. With an observer it
/// compiles. The options name a GPU's ordinal.
Result<CompiledFunction> compileForHost(std::string_view source, const CompileOptions &options,
                                        DoorObserver observe = {});
Result<CompiledFunction> compileForGPU(std::string_view source, const CompileOptions &options);

/// Milliseconds of a compilation, and the image that came of it, whose plan is `plan` as text.
struct EmittedImage {
  KernelImage image;
  FunctionPlan plan;
  double passesMs = 0, llvmMs = 0;
  /// All of the function, whatever was emitted.
  std::vector<WayPlan> ways = {}; // NOLINT(readability-redundant-member-init)
};
/// Says what to emit: all ways of a function; its plan, with kernels where there is one way; or one
/// way.
struct EmitRequest {
  enum class What : uint8_t { All, Plan, Way };
  What what = What::All;
  std::string way = {};      // NOLINT(readability-redundant-member-init)
  DoorObserver observe = {}; // NOLINT(readability-redundant-member-init)
};
Result<EmittedImage> emitImage(std::string_view source, const CompileOptions &options,
                               const EmitRequest &request = {});

/// For tests: forgets the functions that this process compiled.
void forgetFunctions();

/// Changes with every build of the library: hexadecimal digits.
const std::string &getBuildId();
/// The file of the library or program that holds the compiler, as it was opened; empty where that
/// is not known.
std::string getLibraryPath();

struct CompiledFunction::State {
  FunctionInfo info;
  CallRules rules;

  //===- On a GPU ---------------------------------------------------------------------------===//
  std::optional<Kernel> gpu;

  //===- On the CPU -------------------------------------------------------------------------===//
  unsigned threads = 0;
  std::unique_ptr<Jit> jit;
  Jit::PackedFn function = nullptr;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_FUNCTION_H
