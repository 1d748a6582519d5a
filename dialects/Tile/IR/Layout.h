//===- Layout.h - the threads that hold the elements of a register tile -------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A register tile has no address: its elements live in the registers of the threads of one or more
// warpgroups. A layout says which. It is the one idea of this dialect that has to be understood
// before anything else, so it is told here at length.
//
// Definition
// ----------
// A thread of a role has a warp number and a lane; each thread numbers the elements it holds from
// 0. A layout is a map
//
//     (warp, lane, register)  ->  (row, column)
//
// for a tile of a given shape. All of ours are sums of digits. Take an index (the register, the
// lane or the warp), write it in a mixed radix, and let every digit move the position by a fixed
// stride:
//
//     position += (index / divisor mod extent) * stride
//
// The PTX manual describes the accumulator of one 64 x N matrix product. Lane l of warp w holds the
// rows 16w + l/4 and 16w + l/4 + 8, and the columns 8v + 2(l mod 4) and the next one, for v = 0, 1
// and so on. As digits:
//
//     source    divisor  extent   row stride  column stride
//     register  1        2                    1               the two neighbours of a pair
//     register  2        2        8                           the row below by 8
//     register  4        N/8                  8               the next group of eight columns
//     lane      1        4                    2               the four lanes of a quad share a row
//     lane      4        8        1                           eight rows
//     warp      1        4        16                          four warps of a warpgroup
//
// A worked example: N = 80, warp 2, lane 13, register 27.
//     register 27 = 1*1 + 1*2 + 6*4    ->  column 1, row 8, column 6*8 = 48
//     lane 13     = 1*1 + 3*4          ->  column 1*2 = 2, row 3
//     warp 2                           ->  row 32
// together row 8 + 3 + 32 = 43, column 1 + 48 + 2 = 51. The other way round: 43 = 2*16 + 1*8 + 3*1
// and 51 = 6*8 + 1*2 + 1*1, taking strides from the largest to the smallest; that greedy division
// is getOwner. It is exact because the strides of one coordinate nest: each is larger than
// everything that the smaller ones can add up to.
//
// Consequences of the form
// ------------------------
// * Separability. A position is the sum of a part that only the thread decides and a part that only
//   the register decides. The second is known when compiling: a conversion computes the first once
//   per thread and adds immediates. That is all there is to storing a tile, to masking by
//   coordinates and to broadcasting a row.
// * Replication. A lane digit that is missing means that several lanes hold the same element. The
//   maximum of a row of an accumulator (#tile.row) has the accumulator's digits without their
//   columns, so the four lanes of a quad agree. getOwner names the first of the replicas, which is
//   the one that stores.
// * Reduction. To add up a row is to add the registers whose digits differ only in columns, and
//   then to exchange between the lanes whose digits move the column. For the accumulator these are
//   the lane distances 2 and 1. Stopping before the exchange leaves #tile.quad, an M x 4 tile of
//   partial results, one column per lane of a quad.
// * Conversion for free. The probabilities P leave the softmax in the accumulator's layout, as
//   16-bit numbers, and enter the next product as its A operand, whose fragment the manual
//   describes in its own terms:
//
//     register  1        2                    1
//     register  2        2        8
//     register  4        2                    8
//     register  8        K/16                 16
//     (lanes and warps as above)
//
//   Nothing in the compiler says that these two are the same. isSameMap compares the maps, position
//   by position, finds them equal for every K that is a multiple of 16, and tile.convert_layout
//   becomes nothing. For 8-bit elements the fragment holds four neighbours per register, the maps
//   differ, and the conversion is refused instead of being wrong. But a product sums over K in any
//   order. In quads, a lane's positions along K are those that it has of an accumulator: each
//   thread keeps its elements, in registers of another order (findRegisters), if the other operand
//   lies in memory in that order too.
//
// Tiles that are larger than one instruction
// ------------------------------------------
// A unit is whoever issues one product: a warpgroup that of 64 rows above, on other machines a warp
// one of 16 rows. The digits within a warp are the same. `units = k` spreads the rows over k units:
// unit g holds rows [g M/k, (g+1) M/k). If a unit has more rows than a product, a further register
// digit steps by the rows of one. If a warp has more than 16 rows of a product, another steps by
// 16. One more digit for each, the same three functions.
//
// Sums in tensor memory
// ---------------------
// On a machine with tensor memory a product leaves its sum there, and a thread reads a whole row of
// it: lane and warp are the row, the register is the column. An accumulator of such a product has
// that map, and so have its operand, its chunks and its quads, of one row each. Nothing that asks a
// layout notices, and no lanes exchange anything.
//
//     register  1        N                    1
//     lane      1        32       1
//     warp      1        4        32
//
// Why not linear layouts over GF(2)
// ---------------------------------
// Triton's LinearLayout describes a layout as a matrix over bits. Swizzles become linear,
// composition and inversion become matrix algebra. But every extent must be a power of two, and the
// fastest schedules on Hopper use key tiles of 80, 96, 112, 144 and 176. The accumulator of 64 x 80
// has ten column groups, a digit of extent 10 that no bit matrix can hold. Padding to 128 would
// waste registers, and registers decide whether a schedule fits at all.
//
// Why not CuTe's algebra
// ----------------------
// CuTe's layouts are digits like ours (shape : stride, any extent), with composition, complement
// and division on top. That algebra exists because CUTLASS derives partitions of arbitrary tiles
// for arbitrary instructions. An attention compiler meets eight layouts. They are written down
// below as eight tables of digits, and the questions asked of them (who owns this, what do I own,
// is this the same map) need evaluation and not algebra. A ninth layout is a ninth table.
//
// Limits
// ------
// A layout does not describe shared memory: that is an address with a swizzle (SharedType), an XOR
// of bits of the offset, and no thread owns it. It does not pack: registers are counted in elements
// here, and how many elements of 16 bits share a 32-bit register is for the conversion to the
// target to say (consecutive ones do).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_TILE_IR_LAYOUT_H
#define ATTN_DIALECTS_TILE_IR_LAYOUT_H

#include "lib/Machine/Machine.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace attn::tile {

/// An element of a tile. Row vectors have column 0.
struct Position {
  int64_t row = 0, column = 0;
  bool operator==(const Position &) const = default;
};

/// A place in the register file of a role. Warps count from the role's first.
struct Owner {
  int64_t warp = 0, lane = 0, reg = 0;
  bool operator==(const Owner &) const = default;
};

/// One digit of the register, the lane or the warp, and how it moves the position.
struct Digit {
  enum class Source { Register, Lane, Warp };
  Source source;
  int64_t divisor, extent;
  int64_t rowStride, columnStride;
};

/// The map of one layout for one shape; see the essay above.
class Layout {
public:
  /// Accumulators of a product, rows spread over `units` that issue one each.
  static Layout accumulator(const Product &product, int64_t units, int64_t rows, int64_t columns);
  /// The register fragment of a product's A operand, rows x K, with elements of 8 or 16 bits.
  static Layout operandA(const Product &product, int64_t units, unsigned elementBits, int64_t rows,
                         int64_t columns);
  /// The same of elements of 8 bits, whose positions along K are in quads.
  static Layout operandAInQuads(const Product &product, int64_t units, int64_t rows,
                                int64_t columns);
  /// One value per row of an accumulator, the same in all lanes of a quad.
  static Layout row(const Product &product, int64_t units, int64_t rows);
  /// One value per row of an accumulator and lane of a quad: a rows x 4 tile.
  static Layout quad(const Product &product, int64_t units, int64_t rows);
  /// An accumulator of which each lane of a quad holds 8 neighbours of 32 columns.
  static Layout chunked(const Product &product, int64_t units, int64_t rows, int64_t columns);
  /// `vector` neighbours per lane, `lanes` lanes side by side along a row, `warps` warps below each
  /// other.
  static Layout blocked(int64_t vector, int64_t lanes, int64_t warps, int64_t rows,
                        int64_t columns);
  /// One value per row of such blocks, the same in all lanes along it.
  static Layout rowOfBlocks(int64_t lanes, int64_t warps, int64_t rows);

  llvm::ArrayRef<Digit> getDigits() const { return digits; }
  int64_t getNumRows() const { return rows; }
  int64_t getNumColumns() const { return columns; }
  int64_t getNumWarps() const { return warps; }
  /// Elements per thread.
  int64_t getNumRegisters() const { return registers; }

  Position getPosition(Owner owner) const;
  /// The first owner of an element: replicas in other lanes are not named.
  Owner getOwner(Position position) const;
  /// Whether the lane is the first among those that hold the same elements.
  bool isFirstReplica(int64_t lane) const;

private:
  Layout(int64_t rows, int64_t columns) : rows(rows), columns(columns) {}
  /// Rows of a product in tensor memory: one for each thread, with all of its columns.
  static Layout rowsInLanes(const Product &product, int64_t units, int64_t rows, int64_t columns);
  void add(Digit::Source source, int64_t extent, int64_t rowStride, int64_t columnStride);
  /// A digit that the position does not depend on.
  void skip(Digit::Source source, int64_t extent) { add(source, extent, 0, 0); }
  void addRowsOfUnits(const Product &product, int64_t units);

  llvm::SmallVector<Digit, 8> digits;
  int64_t rows, columns, warps = 1, lanes = 1, registers = 1;
};

/// Whether every (warp, lane, register) holds the same element under both: converting moves
/// nothing.
bool isSameMap(const Layout &from, const Layout &to);

/// Where every thread holds the same elements under both: by register of `to`, the register of
/// `from` that has its element. Empty where some thread does not.
llvm::SmallVector<int64_t> findRegisters(const Layout &from, const Layout &to);

} // namespace attn::tile

#endif // ATTN_DIALECTS_TILE_IR_LAYOUT_H
