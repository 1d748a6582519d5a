//===- TileTypes.td - places, barriers, slots, rows, accumulators in flight ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILE_TYPES_TD
#define TILE_TYPES_TD

include "dialects/Tile/IR/TileAttrs.td"

class Tile_Type<string name, string mnemonic_> : TypeDef<Tile_Dialect, name> {
  let mnemonic = mnemonic_;
}

def Tile_SharedType : Tile_Type<"Shared", "shared"> {
  let summary = "a tile in shared memory, with a swizzle";
  let description = [{
    `!tile.shared<MxNxT, swizzle = S>`: M rows of N elements, cut into slabs of S bytes (128, 64 or
    32) of each row. It lies slab after slab, row after row, S bytes per row; the last slab is
    padded. Inside a slab the 16-byte chunk c of row r lies at chunk c xor (r mod 8) (for 128; 64
    and 32 swizzle fewer bits). The address is a multiple of 1024.

    `!tile.shared<NxT>` is a row: N elements one after the other, without a swizzle. Numbers for
    columns lie in rows, which threads read and products do not.

    `quads` is an order of the columns of 8-bit elements. Of sixteen, position 4 t + i has column 2 t, 2 t + 1,
    2 t + 8 or 2 t + 9. Lane t of a quad has these of an accumulator. A product may sum over its columns in any
    order, if both operands have the same one.

    `stages = K` makes a ring of K such tiles, one after the other; `tile.stage` picks one.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    "int64_t":$swizzle,
    "int64_t":$stages,
    "bool":$quads);
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType, "int64_t":$swizzle,
                     "int64_t":$stages), [{
      return $_get($_ctxt, shape, elementType, swizzle, stages, /*quads=*/false);
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether it has one dimension, and no swizzle (0).
    bool isRow() const { return getShape().size() == 1; }
    int64_t getNumRows() const { return isRow() ? 1 : getShape()[0]; }
    int64_t getNumColumns() const { return getShape().back(); }
    unsigned getElementBytes() const { return getElementType().getIntOrFloatBitWidth() / 8; }
    /// Elements of a row in one slab.
    int64_t getSlabColumns() const {
      return isRow() ? getNumColumns() : getSwizzle() / getElementBytes();
    }
    int64_t getNumSlabs() const {
      return (getNumColumns() + getSlabColumns() - 1) / getSlabColumns();
    }
    int64_t getSlabBytes() const {
      return getNumRows() * (isRow() ? getNumColumns() * getElementBytes() : getSwizzle());
    }
    /// Bytes of one stage, padding included.
    int64_t getStageBytes() const { return getNumSlabs() * getSlabBytes(); }
    int64_t getSizeInBytes() const { return getStages() * getStageBytes(); }
    /// The type of one stage, and of so many.
    SharedType getStageType() const { return withStages(1); }
    SharedType withStages(int64_t count) const;
  }];
}

def Tile_ColumnsType : Tile_Type<"Columns", "columns"> {
  let summary = "columns of tensor memory that the block has claimed";
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

def Tile_TensorPlaceType : Tile_Type<"TensorPlace", "tensor"> {
  let summary = "a tile in tensor memory";
  let description = [{
    `!tile.tensor<MxNxT>`: a row is a lane of the unit that has it. A column of 32 bits has one
    element of f32, or two neighbours of 16 bits.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumRows() const { return getShape()[0]; }
    int64_t getNumColumns() const { return getShape()[1]; }
    /// Of tensor memory, 32 bits each, in whole steps of what a product writes.
    int64_t getWords() const {
      int64_t step = 16, columns = (getNumColumns() + step - 1) / step * step;
      return columns * getElementType().getIntOrFloatBitWidth() / 32;
    }
  }];
}

def Tile_BarrierType : Tile_Type<"Barrier", "barrier"> {
  let summary = "an array of mbarriers, one per stage of a ring";
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getSizeInBytes() const { return 8 * getStages(); }
  }];
}

def Tile_SlotType : Tile_Type<"Slot", "slot"> {
  let summary = "a place in the endless sequence of uses of a ring: stage and phase";
  let description = [{
    The i-th use of a ring of K stages is stage i mod K in phase i / K mod 2. `tile.slot` is use 0,
    `tile.next` the next one.
  }];
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
  let genVerifyDecl = 1;
}

def Tile_RowsType : Tile_Type<"Rows", "rows"> {
  let summary = "where the rows of a tile lie in memory, for the warps that gather them";
  let description = [{
    `!tile.rows<N, warps = W>`: N rows in groups of 8, the swizzle's period. Of each group warp w has
    8 / W that follow each other, from row w * 8 / W on. The lanes of a warp know a row each, or as
    many as they need for all rows of the warp.
  }];
  let parameters = (ins "int64_t":$count, "int64_t":$warps);
  let assemblyFormat = "`<` $count `,` `warps` `=` $warps `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRowsOfWarp() const { return getCount() / getWarps(); }
    /// Of a group.
    int64_t getRowsTogether() const { return kSwizzleRows / getWarps(); }
    /// Rows that a lane knows.
    int64_t getRowsOfLane() const { return (getRowsOfWarp() + kLanes - 1) / kLanes; }
  }];
}

def Tile_InFlightType : Tile_Type<"InFlight", "in_flight"> {
  let summary = "an accumulator that a matrix product is still writing";
  let description = [{
    Only another product into the same accumulator and `tile.mma_wait` accept it: reading too early
    is a type error.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $tile `>`";
}

#endif // TILE_TYPES_TD
