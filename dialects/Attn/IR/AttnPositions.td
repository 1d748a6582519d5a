//===- AttnPositions.td - where a part stands in a whole -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Apart from AttnAttrs.td, which all that includes the dialect parses: after attn-expand-variants
// nobody knows positions.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_POSITIONS_TD
#define ATTN_POSITIONS_TD

include "dialects/Attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Attn_PlacementAttr : I32EnumAttr<"Placement", "where an op's own positions stand in the whole", [
    I32EnumAttrCase<"Own", 0, "own">,
    I32EnumAttrCase<"Origin", 1, "origin">,
    I32EnumAttrCase<"Table", 2, "table">]> {
  let cppNamespace = "::attn";
}

def Attn_PositionsAttr : Attn_Attr<"Positions", "positions"> {
  let summary = "b, h, m and n, M and N are those of a whole; captures origins (1) or tables, then total (2)";
  let description = [{
    The op has a part of the rows and keys of a whole. Each of b, h, m and n is the op's `own`, or counts from an
    `origin`, or is an element of a `table` (s29). All other variants, regions, and dropout mean positions in the
    whole, whose M and N are `total`.
  }];
  let parameters = (ins "Placement":$batch, "Placement":$head, "Placement":$row, "Placement":$key);
  let assemblyFormat = "`<` $batch `,` $head `,` $row `,` $key `>`";
  let extraClassDeclaration = [{
    /// Of b, h, m and n by number.
    ::attn::Placement getPlacement(unsigned position) const;
  }];
}

#endif // ATTN_POSITIONS_TD
