//===- Jit.h - machine code for this process --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_CPU_JIT_H
#define ATTN_LIB_TARGET_CPU_JIT_H

#include "lib/Target/CPU/HostInfo.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <utility>

namespace llvm {
class MemoryBuffer;
} // namespace llvm
namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc
namespace mlir {
class ModuleOp;
} // namespace mlir

namespace attn {

/// How much LLVM does with code that arrives vectorised and unrolled.
enum class OptLevel {
  None,
  /// Scalars out of memory, common subexpressions, loop-invariant code; no inlining of calls
  /// across functions, no vectorisers. A third of the time of O2.
  Lean,
  O2,
  O3
};

struct JitOptions {
  HostInfo host;
  OptLevel optLevel = OptLevel::Lean;
  llvm::CodeGenOptLevel codegenLevel = llvm::CodeGenOptLevel::Default;
  /// Whether the code checks its accesses, as AddressSanitizer does, whose runtime the process has.
  bool sanitize = false;
  /// Functions of this process that the code may call by name, besides those it always may.
  llvm::SmallVector<std::pair<std::string, void *>> symbols;
  /// Where to write what is compiled; empty for nowhere. The LLVM IR is the optimised one.
  std::string dumpLLVM, dumpAssembly, dumpObject;
};

struct JitTimings {
  double translateMs = 0, optimizeMs = 0, codegenMs = 0, linkMs = 0;
  double total() const { return translateMs + optimizeMs + codegenMs + linkMs; }
};

/// A module compiled into this process; its functions live as long as this does.
class Jit {
public:
  /// Compiles a module of the LLVM dialect. Each public function f with a body also gets
  /// `void _mlir_f(void **arguments)`, where arguments[i] points to the i-th lowered argument and
  /// one more points to the room for the result if there is one: one type for every signature.
  ///
  /// Errors of LLVM, also those that it reports by ending the process, come back as errors.
  static llvm::Expected<std::unique_ptr<Jit>> compile(mlir::ModuleOp module,
                                                      const JitOptions &options);

  /// Links what compileObject made with options of the same host, here or in another process.
  /// `timings` are those of making it.
  static llvm::Expected<std::unique_ptr<Jit>> link(std::unique_ptr<llvm::MemoryBuffer> object,
                                                   const JitOptions &options,
                                                   const JitTimings &timings = {});
  ~Jit();

  /// The address of a function or variable of the module.
  llvm::Expected<void *> lookup(llvm::StringRef name) const;

  using PackedFn = void (*)(void **);
  llvm::Expected<PackedFn> lookupPacked(llvm::StringRef name) const;

  const JitTimings &getTimings() const { return timings; }

private:
  Jit();
  /// Text of the engine in addition to the error that a lookup returns: the symbols that are
  /// missing.
  std::string details;
  std::unique_ptr<llvm::orc::LLJIT> engine;
  JitTimings timings;
};

} // namespace attn

#endif // ATTN_LIB_TARGET_CPU_JIT_H
