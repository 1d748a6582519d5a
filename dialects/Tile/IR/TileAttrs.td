//===- TileAttrs.td - layouts and launch attributes ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILE_ATTRS_TD
#define TILE_ATTRS_TD

include "dialects/Tile/IR/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"

class Tile_Attr<string name, string mnemonic_, list<Trait> traits = []>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = mnemonic_;
}

//===----------------------------------------------------------------------===//
// Layouts: encodings of register tiles
//===----------------------------------------------------------------------===//

/// Fits its tensor: checked wherever the tensor type is used by a tile op.
class Tile_Layout<string name, string mnemonic> : Tile_Attr<name, mnemonic, [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]>;

/// The name of a product. An attribute knows no module, and so no machine.
def Tile_Product : StringRefParameter<"", "::attn::getDefaultMachine().product.name.str()">;

def Tile_AccAttr : Tile_Layout<"Acc", "acc"> {
  let summary = "the accumulator of products, whose rows are spread over units";
  let description = [{
    A unit is whoever issues one product. `product` names the instruction as lib/Machine does; it is
    the default machine's where nothing is said. Its threads and rows are a unit's.

    ```mlir
    tensor<128x96xf32, #tile.acc<units = 2>>
    ```
  }];
  let parameters = (ins "int64_t":$units, Tile_Product:$product);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Its description; there is one, as the verifier sees to.
    const ::attn::Product &getUnit() const { return *::attn::findProduct(getProduct()); }
    /// The layout of the left operand of these products.
    OperandAAttr getOperand(bool quads = false) const;
  }];
}

def Tile_OperandAAttr : Tile_Layout<"OperandA", "operand_a"> {
  let summary = "the register fragment of a product's A operand with 8- or 16-bit elements";
  let description = [{
    With `quads`, positions along K have the order of shared tiles with `quads`: then lanes have what they have of an
    accumulator, in other registers.
  }];
  let parameters = (ins "int64_t":$units, Tile_Product:$product, DefaultValuedParameter<"bool", "false">:$quads);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// As in #tile.acc.
    const ::attn::Product &getUnit() const { return *::attn::findProduct(getProduct()); }
  }];
}

def Tile_RowAttr : Tile_Layout<"Row", "row"> {
  let summary = "one value per row of an accumulator or of blocks, the same in all lanes that share it";
  let parameters = (ins "::mlir::Attribute":$of);
  let assemblyFormat = "`<` $of `>`";
  let genVerifyDecl = 1;
}

def Tile_QuadAttr : Tile_Layout<"Quad", "quad"> {
  let summary = "four values per row of an accumulator, one in each lane of a quad: an M x 4 tile";
  let description = [{
    The result of a reduction along the columns before its lanes exchange: column q collects the
    accumulator's columns c with c / 2 mod 4 == q. Sums that are only needed at the end of a loop
    stay in this form.
  }];
  let parameters = (ins "::attn::tile::AccAttr":$of);
  let assemblyFormat = "`<` qualified($of) `>`";
}

def Tile_ChunkedAttr : Tile_Layout<"Chunked", "chunked"> {
  let summary = "rows of an accumulator with 8 neighbours in each lane of a quad: 16 bytes of memory";
  let description = [{
    An accumulator of 16-bit elements is converted to this layout before it goes to memory: of each
    32 columns, lane q of a quad holds 8q to 8q + 7. The conversion stays within the quads. Tiles
    from memory that are summed along rows have it too.
  }];
  let parameters = (ins "::attn::tile::AccAttr":$of);
  let assemblyFormat = "`<` qualified($of) `>`";
}

def Tile_BlockedAttr : Tile_Layout<"Blocked", "blocked"> {
  let summary = "rows side by side for coalesced memory access";
  let description = [{
    Each lane holds `vector` neighbours of a row, `lanes` lanes lie side by side along a row,
    `warps` warps below each other.
  }];
  let parameters = (ins "int64_t":$vector, "int64_t":$lanes, "int64_t":$warps);
  let assemblyFormat = "`<` struct(params) `>`";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Tile_KernelAttr : Tile_Attr<"Kernel", "kernel"> {
  let summary = "makes a function a kernel: its block and its grid";
  let description = [{
    * `grid`: up to three lists of factors (x, y, z): integers, #plan.extent, #plan.multiprocessors
      or #plan.parts; a dimension of the grid is the product of its list;
    * `cluster`: the blocks of a cluster (x, y, z), which fill the grid;
    * `programmatic`: the kernel may start before the one before it ends, and waits for it before it
      touches memory of others;
    * `schedule`: the words that later passes obey, as in `#attn.schedule`:

    | words               | who obeys them                                 |
    |---------------------|------------------------------------------------|
    | `stages`            | tile-make-rings                                |
    | `stay`, `tail`      | tile-persist-blocks                            |
    | `keep`              | tile-keep-operands                             |
    | `recompute`, `hold` | convert-tile-to-nvvm                           |
    | `fixed_split`       | tile-fold-factors and convert-tile-to-nvvm: no |
    |                     | sum joins a product                            |
    | `resident`          | all that share out registers and shared memory |

    ```mlir
    #tile.kernel<warpgroups = 3, grid = [[#plan.extent<argument = 0, dim = 2, divisor = 128>], [16]],
                 schedule = <stages = 2>>
    ```
  }];
  let parameters = (ins
    "int64_t":$warpgroups,
    "::mlir::ArrayAttr":$grid,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$cluster,
    DefaultValuedParameter<"bool", "false">:$programmatic,
    DefaultValuedParameter<"::attn::Schedule", "::attn::Schedule()">:$schedule);
  let builders = [
    AttrBuilder<(ins "int64_t":$warpgroups, "::mlir::ArrayAttr":$grid,
                     CArg<"const ::attn::Schedule &", "{}">:$schedule), [{
      return $_get($_ctxt, warpgroups, grid, ::mlir::DenseI64ArrayAttr(), false, schedule);
    }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same with other roles.
    KernelAttr withWarpgroups(int64_t count) const {
      return get(getContext(), count, getGrid(), getCluster(), getProgrammatic(), getSchedule());
    }
    /// The same, starting while the kernel before it ends.
    KernelAttr withProgrammatic() const {
      return get(getContext(), getWarpgroups(), getGrid(), getCluster(), /*programmatic=*/true,
                 getSchedule());
    }
    /// The same with so many blocks for each multiprocessor.
    KernelAttr withBlocksThatStay(int64_t blocks) const;
    /// Whether the device decides how many blocks there are: they stay until all work is done.
    bool isStaying() const;
  }];
}

def Tile_RoleAttr : Tile_Attr<"Role", "role"> {
  let summary = "a role of a kernel: who plays it, with which registers";
  let description = [{
    An entry of the kernel's `tile.roles`; ops name it in `tile.role`. `warpgroups`, `registers` and
    `elected` are those of `tile.specialize`.

    ```mlir
    #tile.role<name = "producer", warpgroups = 1, registers = 24, elected = true>
    ```
  }];
  let parameters = (ins
    "::mlir::StringAttr":$name,
    "int64_t":$warpgroups,
    "int64_t":$registers,
    DefaultValuedParameter<"bool", "false">:$elected);
  let assemblyFormat = "`<` struct(params) `>`";
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Tile_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::attn::tile";
}

def Tile_CombinerAttr : Tile_Enum<"Combiner", "how a reduction combines two elements", [
    I32EnumAttrCase<"Max", 0, "max">,
    I32EnumAttrCase<"Add", 1, "add">]>;

def Tile_QuantifierAttr : Tile_Enum<"Quantifier", "how many elements have to be true", [
    I32EnumAttrCase<"Any", 0, "any">,
    I32EnumAttrCase<"All", 1, "all">]>;

def Tile_FenceKindAttr : Tile_Enum<"FenceKind", "what a fence orders", [
    I32EnumAttrCase<"AsyncShared", 0, "async_shared">]>;

#endif // TILE_ATTRS_TD
