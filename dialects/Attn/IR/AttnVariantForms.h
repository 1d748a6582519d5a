//===- AttnVariantForms.h - how the variants are written -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNVARIANTFORMS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNVARIANTFORMS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace attn {

/// A variant as people write it: `#attn.` before the name, the parameters after it.
struct VariantForm {
  llvm::StringLiteral name, parameters;
  llvm::StringLiteral sentence;

  std::string getText() const { return ("#attn." + name + parameters).str(); }
};

/// All variants, in the order of AttnAttrs.td.
llvm::ArrayRef<VariantForm> getVariantForms();

/// How the variant of that name is written; of an unknown name the nearest one and a list of all.
/// Empty for `schedule`, which is none.
std::string describeVariant(llvm::StringRef name);

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNVARIANTFORMS_H
