//===- AttnDialect.td - the attn dialect ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TD
#define ATTN_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::attn";
  let summary = "attention on tensors";
  let description = [{
    Attention as mathematics: the dialect says nothing about the place where attention runs. One alphabet of dimensions
    serves everywhere:

    | letter | meaning                    | known at  |
    |--------|----------------------------|-----------|
    | `B`    | batch                      | run time  |
    | `H`    | query heads                | run time  |
    | `Hkv`  | key and value heads        | run time  |
    | `M`    | query rows                 | run time  |
    | `N`    | key rows                   | run time  |
    | `D`    | columns of query and key   | compile time |
    | `Dv`   | columns of value           | compile time |

    The numbered semantics and constraints are in `dialects/Attn/README.md`.
  }];
  let extraClassDeclaration = [{
    /// Errors tell how a variant is written, or the nearest one.
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser, ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute, ::mlir::DialectAsmPrinter &printer) const override;
  }];
  let hasOperationAttrVerify = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect",
    "::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect"
  ];
}

class Attn_Attr<string name, string mnemonic_, list<Trait> traits = []> : AttrDef<Attn_Dialect, name, traits> {
  let mnemonic = mnemonic_;
}

#endif // ATTN_DIALECT_TD
