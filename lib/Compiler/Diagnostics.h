//===- Diagnostics.h - MLIR's diagnostics as a status ---------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_DIAGNOSTICS_H
#define ATTN_LIB_COMPILER_DIAGNOSTICS_H

#include "attn/Status.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace attn {

/// Keeps the errors of MLIR while it is alive, instead of printing what MLIR says.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            errors.push_back(format(diagnostic));
          return mlir::success();
        }) {}

  /// The first error, the one that caused the others; `otherwise` when none was given.
  Status fail(const char *otherwise) const {
    return {StatusCode::InvalidKernel, errors.empty() ? otherwise : errors.front(), ""};
  }
  Status fail(llvm::Error otherwise) const { return fail(toString(std::move(otherwise)).c_str()); }

private:
  /// "source:3:7: expected X, got Y; note text", on one line.
  static std::string format(mlir::Diagnostic &diagnostic) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (auto place = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>())
      os << place.getFilename().getValue() << ':' << place.getLine() << ':' << place.getColumn()
         << ": ";
    os << diagnostic;
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      if (!llvm::StringRef(note.str()).starts_with("see current operation"))
        os << "; " << note;
    for (char &c : text)
      if (c == '\n')
        c = ' ';
    return text;
  }

  std::vector<std::string> errors;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace attn

#endif // ATTN_LIB_COMPILER_DIAGNOSTICS_H
