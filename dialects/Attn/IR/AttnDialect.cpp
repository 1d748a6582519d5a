//===- AttnDialect.cpp - registration of the attn dialect ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/IR/AttnCacheOps.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/AttnPositions.h"
#include "dialects/Attn/IR/AttnVariantForms.h"
#include "lib/Schedule/ScheduleText.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/Attn/IR/AttnDialect.cpp.inc"
#include "dialects/Attn/IR/AttnEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/IR/AttnAttrs.cpp.inc"

void attn::AttnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Attn/IR/AttnAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Attn/IR/AttnOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Attn/IR/AttnCacheOps.cpp.inc"
      >();
}

mlir::LogicalResult attn::AttnDialect::verifyOperationAttribute(mlir::Operation *op,
                                                                mlir::NamedAttribute attribute) {
  // schedule_c2: 'attn.schedule' holds a schedule
  if (attribute.getName() == "attn.schedule" && !mlir::isa<ScheduleAttr>(attribute.getValue()))
    return op->emitOpError("expected 'attn.schedule' to be a #attn.schedule, got ")
           << attribute.getValue();
  // pack_c1: 'attn.pack' is 2, 4, 8, 16, 32 or 64
  auto slots = mlir::dyn_cast<mlir::IntegerAttr>(attribute.getValue());
  if (attribute.getName() == "attn.pack" &&
      !(slots && slots.getValue().isPowerOf2() && slots.getInt() >= 2 && slots.getInt() <= 64))
    return op->emitOpError("expected 'attn.pack' to be 2, 4, 8, 16, 32 or 64, got ")
           << attribute.getValue();
  // kept_keys_c1: 'attn.kept_keys' is "slice", "prefix" or "diagonal"
  auto kept = mlir::dyn_cast<mlir::StringAttr>(attribute.getValue());
  if (attribute.getName() == "attn.kept_keys" &&
      !(kept && (kept == "slice" || kept == "prefix" || kept == "diagonal")))
    return op->emitOpError(
               "expected 'attn.kept_keys' to be \"slice\", \"prefix\" or \"diagonal\", got ")
           << attribute.getValue();
  return mlir::success();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

mlir::Attribute attn::AttnDialect::parseAttribute(mlir::DialectAsmParser &parser,
                                                  mlir::Type type) const {
  llvm::StringRef name =
      parser.getFullSymbolSpec().take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  // The generated parsers tell the punctuation that they miss, and then the parameter.
  bool isTold = false;
  mlir::ScopedDiagnosticHandler handler(getContext(), [&](mlir::Diagnostic &diagnostic) {
    if (!isTold && llvm::StringRef(diagnostic.str()).starts_with("expected '")) {
      if (std::string hint = describeVariant(name); !hint.empty())
        diagnostic.attachNote() << hint;
      isTold = true;
    }
    // Others show it.
    return mlir::failure();
  });
  llvm::SMLoc start = parser.getCurrentLocation();
  llvm::StringRef mnemonic;
  mlir::Attribute attribute;
  if (generatedAttributeParser(parser, &mnemonic, type, attribute).has_value())
    return attribute;
  auto error = parser.emitError(start) << "expected a variant, got '" << mnemonic << "'";
  error.attachNote() << describeVariant(mnemonic);
  return {};
}

void attn::AttnDialect::printAttribute(mlir::Attribute attribute,
                                       mlir::DialectAsmPrinter &printer) const {
  mlir::LogicalResult isPrinted = generatedAttributePrinter(attribute, printer);
  assert(mlir::succeeded(isPrinted) && "an attribute of another dialect");
  (void)isPrinted;
}
