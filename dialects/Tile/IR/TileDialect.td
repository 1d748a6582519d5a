//===- TileDialect.td - the tile dialect ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILE_DIALECT_TD
#define TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::attn::tile";
  let summary = "the program of one thread block";
  let description = [{
    Where and when: register tiles with a layout, shared tiles with a swizzle, matrix products,
    copies, barriers, roles.

    A register tile is a `tensor<MxNxT, #layout>` (a row vector a `tensor<MxT, #layout>`);
    elementwise work on it is stock arith and math. The same ops serve rooms 4 to 6: room 4 uses the
    synchronous ones on tensors without layouts, room 5 adds shared memory and layouts, room 6 the
    asynchronous ones. See `dialects/Tile/README.md`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::attn::plan::PlanDialect"];
  let extraClassDeclaration = [{
    /// The func.func attribute that makes a function a kernel: a KernelAttr.
    static constexpr ::llvm::StringLiteral kKernelAttrName = "tile.kernel";
    /// The argument attribute that makes a memref scratch: its sizes, as factors of #tile.kernel.
    static constexpr ::llvm::StringLiteral kScratchAttrName = "tile.scratch";
    /// The argument attribute that makes scratch start as zeros in each launch: a UnitAttr.
    static constexpr ::llvm::StringLiteral kZeroedAttrName = "tile.zeroed";
    /// The argument attribute of f32 memory whose tiles, its last two dimensions, lie as warps have
    /// them in #tile.acc: a UnitAttr. Of each 16 rows one block of 8 columns follows the other, and
    /// of a block the four elements of one lane follow those of another.
    static constexpr ::llvm::StringLiteral kFragmentsAttrName = "tile.fragments";
    /// The func.func attribute of a kernel whose sums are to be shared out among roles, until
    /// tile-divide-sums: a UnitAttr.
    static constexpr ::llvm::StringLiteral kDividedAttrName = "tile.divided";
    /// The attribute that says how many turns of its loop an op is late, until tile-pipeline-steps:
    /// an IntegerAttr of 64 bits.
    static constexpr ::llvm::StringLiteral kDelayAttrName = "tile.delay";
    /// The attribute that names the role of an op, until tile-outline-roles: a StringAttr.
    static constexpr ::llvm::StringLiteral kRoleAttrName = "tile.role";
    /// The func.func attribute that lists the roles of a kernel: an ArrayAttr of RoleAttr.
    static constexpr ::llvm::StringLiteral kRolesAttrName = "tile.roles";
    /// The attribute that tells how to launch a converted kernel: a dictionary.
    static constexpr ::llvm::StringLiteral kPlanAttrName = "tile.plan";
  }];
}

#endif // TILE_DIALECT_TD
