//===- KernelFunctions.h - kernels that steps share ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_KERNELFUNCTIONS_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_KERNELFUNCTIONS_H

#include "lib/Conversion/AttnToVector/Emitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// The kernels of a module as functions. Loops over tiles with and without a mask hold a step each,
/// and so do both forms of gradients; to compile takes as long as there are copies of a kernel.
class KernelFunctions {
public:
  using Body = llvm::function_ref<void(Emitter &, llvm::ArrayRef<mlir::Value>)>;

  /// Calls the function that `body` writes from these operands, of which some may be null. Calls of
  /// one name with operands of the same types share a function. If one of these calls passes a
  /// number as an operand, and another knows it as a constant, they share the function that takes
  /// it.
  void call(Emitter &b, const std::string &name, llvm::ArrayRef<mlir::Value> operands, Body body);

  /// Puts those that are called once where they are called. No call may follow.
  void finish();

private:
  using Operands = llvm::SmallVector<mlir::Value>;
  struct Call {
    mlir::func::CallOp op;
    Operands operands;
  };
  struct Function {
    std::string name, key;
    /// Of each operand the constant that it always is.
    llvm::SmallVector<std::optional<int64_t>> constants;
    llvm::SmallVector<mlir::Type> types;
    mlir::func::FuncOp op;
    llvm::SmallVector<Call> calls;

    bool covers(const Function &other) const;
    void addCall(mlir::OpBuilder &b, mlir::Location loc, const Operands &operands);
  };

  static void define(Emitter &b, Function &wanted, llvm::ArrayRef<mlir::Value> operands, Body body);
  static void takeCalls(Function &from, Function &to);

  std::vector<Function> functions;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_KERNELFUNCTIONS_H
