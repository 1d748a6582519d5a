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

def Tile_AccAttr : Tile_Layout<"Acc", "acc"> {
  let summary = "a wgmma accumulator, 64 rows per warpgroup and step";
  let parameters = (ins "int64_t":$warpgroups);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Tile_OperandAAttr : Tile_Layout<"OperandA", "operand_a"> {
  let summary = "the register fragment of a wgmma A operand with 8- or 16-bit elements";
  let parameters = (ins "int64_t":$warpgroups);
  let assemblyFormat = "`<` struct(params) `>`";
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

def Tile_TargetAttr : Tile_Attr<"Target", "target"> {
  let summary = "the machine that kernels are for, by its name in lib/Machine";
  let description = [{
    Stands on the module as `tile.target`. A module without it is for sm_90a.

    ```mlir
    module attributes {tile.target = #tile.target<"sm_90a">} {}
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name);
  let assemblyFormat = "`<` $name `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Its description; there is one, as the verifier sees to.
    const Machine &getMachine() const { return *findMachine(getName()); }
  }];
}

def Tile_ExtentAttr : Tile_Attr<"Extent", "extent"> {
  let summary = "a factor of the grid: ceil(size of dimension `dim` of an argument * `multiplier` / "
                "`divisor`) * `unit`";
  let parameters = (ins
    "int64_t":$argument,
    "int64_t":$dim,
    DefaultValuedParameter<"int64_t", "1">:$divisor,
    DefaultValuedParameter<"int64_t", "1">:$multiplier,
    DefaultValuedParameter<"int64_t", "1">:$unit);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_MultiprocessorsAttr : Tile_Attr<"Multiprocessors", "multiprocessors"> {
  let summary = "a factor of the grid: `blocks` for each multiprocessor of the device";
  let description = [{
    The grid of blocks that stay and take one piece of work after the other.

    ```mlir
    #tile.kernel<warpgroups = 3, grid = [[#tile.multiprocessors<blocks = 1>]]>
    ```
  }];
  let parameters = (ins "int64_t":$blocks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_PartsAttr : Tile_Attr<"Parts", "parts"> {
  let summary = "a factor of the grid: how many parts keep the multiprocessors of the device busy";
  let description = [{
    The number of parts multiplies a grid of `blocks` (a list of factors). It is the least number
    whose last round of blocks leaves at most 1/16 of the multiprocessors idle, or else the number
    that leaves the fewest idle. It is at most `most` and at most `keys`.

    ```mlir
    #tile.parts<blocks = [#tile.extent<argument = 0, dim = 0>, #tile.extent<argument = 1, dim = 1>],
                keys = #tile.extent<argument = 1, dim = 2, divisor = 512>, most = 64>
    ```
  }];
  let parameters = (ins
    "::mlir::ArrayAttr":$blocks,
    "::mlir::Attribute":$keys,
    "int64_t":$most);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_PackedAttr : Tile_Attr<"Packed", "packed"> {
  let summary = "an argument whose boxes see the heads that share a key head as rows";
  let description = [{
    Stands as `tile.packed` on a memref argument (B, H, M, ...). `Hkv` is dimension 1 of the
    argument `keys`, and `g = H / Hkv` is at most `slots`. Positions of tile.load, tile.store and
    copies are positions of a view (B, Hkv, M * slots, ...): row `m * slots + j` of head `k` is row
    `m` of head `k * g + j`. A row with `j >= g` is outside, except that boxes may read other heads
    there. Sizes (memref.dim) are the argument's own.

    ```mlir
    func.func @decode(%q: memref<?x?x?x128xbf16> {tile.packed = #tile.packed<slots = 8, keys = 1>},
                      %k: memref<?x?x?x128xbf16>)
    ```
  }];
  let parameters = (ins "int64_t":$slots, "int64_t":$keys);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_RangeAttr : Tile_Attr<"Range", "range"> {
  let summary = "a condition on a call: dimension `dim` of an argument has a size from `least` to `most`";
  let description = [{
    With `per`, the size is divided by that of another argument, rounding up: heads per key head.
    With `parts` in place of an argument, the condition is on the number of parts. Kernels in a row
    whose `tile.when` lists the same ranges are one way to run a function. A launch runs the first
    way whose ranges all hold; the last has no `tile.when`.

    ```mlir
    tile.when = [#tile.range<argument = 0, dim = 2, least = 0, most = 64>]
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "-1">:$argument,
    DefaultValuedParameter<"int64_t", "-1">:$dim,
    "int64_t":$least,
    DefaultValuedParameter<"int64_t", "std::numeric_limits<int64_t>::max()">:$most,
    OptionalParameter<"::attn::tile::ExtentAttr">:$per,
    OptionalParameter<"::attn::tile::PartsAttr">:$parts);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_KernelAttr : Tile_Attr<"Kernel", "kernel"> {
  let summary = "makes a function a kernel: its block and its grid";
  let description = [{
    * `grid`: up to three lists of factors (x, y, z): integers, #tile.extent, #tile.multiprocessors
      or #tile.parts; a dimension of the grid is the product of its list;
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
    | `resident`          | all that share out registers and shared memory |

    ```mlir
    #tile.kernel<warpgroups = 3, grid = [[#tile.extent<argument = 0, dim = 2, divisor = 128>], [16]],
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
  let extraClassDeclaration = [{
    /// How often the role arrives at a barrier that all of it arrives at.
    int64_t getArrivals() const { return getElected() ? 1 : getWarpgroups(); }
  }];
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
