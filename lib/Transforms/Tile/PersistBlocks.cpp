//===- PersistBlocks.cpp - tile-persist-blocks -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block for each multiprocessor takes the blocks of the grid, here called pieces, one after the
// other. Their order is fixed, so that nothing is shared, and nobody waits for anybody. As in a
// grid, x runs fastest: blocks that run at once read the same few (y, z), which L2 keeps.
//
//   * Where all pieces have as much to do, block b takes b, b + blocks, and so on.
//   * Where x decides how much, it does so steadily: as attn-tile-to-grid counts under masks that
//     look back, x = 0 has most to do. Then pairs come first, as many as fill whole rounds: the x
//     of a head from both ends, p and last - p, which together are about the same for all p. The
//     last x of all heads are in no pair. They come last, the longest first, and every other round
//     backwards, so that blocks end together to within one short piece.
//   * Multiprocessors are not equally fast, so blocks with the same work do not end together. With
//     a tail, blocks that stay take no more than most of the pairs. What is left, of which every
//     piece is shorter, more blocks take, which the device starts in order wherever a block has
//     ended.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace attn::tile {
#define GEN_PASS_DEF_PERSISTBLOCKSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

/// Whether the block's x decides what loops and branches do: the work of pieces is not the same.
static bool isUneven(func::FuncOp kernel) {
  DenseSet<Value> ofX;
  auto isOfX = [&](Value value) { return ofX.contains(value); };
  WalkResult walk = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto id = dyn_cast<gpu::BlockIdOp>(op); id && id.getDimension() == gpu::Dimension::x)
      ofX.insert(id);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return llvm::any_of(loop->getOperands().take_front(loop.getNumControlOperands()), isOfX)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    if (llvm::none_of(op->getOperands(), isOfX))
      return WalkResult::advance();
    if (op->getNumRegions() > 0)
      return WalkResult::interrupt();
    // Tiles decide nothing.
    for (Value result : op->getResults())
      if (result.getType().isIntOrIndexOrFloat())
        ofX.insert(result);
    return WalkResult::advance();
  });
  return walk.wasInterrupted();
}

/// Before a tail, the blocks that stay take so many hundredths of the pairs. Since the rows with
/// the most work come first, that leaves a twentieth of the work. Blocks were measured to end apart
/// by as much.
static constexpr int64_t kStayingPairs = 78;

/// Heads of fewer pieces stay together, so that L2 reads their keys once.
static constexpr int64_t kShortHead = 16;

namespace {
/// Arithmetic on indices at one place.
struct Indices {
  ImplicitLocOpBuilder &b;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return b.createOrFold<arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return b.createOrFold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return b.createOrFold<arith::DivUIOp>(x, y); }
  Value ceilDiv(Value x, Value y) { return b.createOrFold<arith::CeilDivUIOp>(x, y); }
  Value rem(Value x, Value y) { return b.createOrFold<arith::RemUIOp>(x, y); }
  Value max(Value x, Value y) { return b.createOrFold<arith::MaxUIOp>(x, y); }
  Value select(Value condition, Value x, Value y) {
    return b.createOrFold<arith::SelectOp>(condition, x, y);
  }
  Value both(Value x, Value y) { return b.createOrFold<arith::AndIOp>(x, y); }
  Value less(Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, x, y);
  }
  Value equal(Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
  }
};

/// Turns one kernel's grid into a loop.
class Persister {
public:
  explicit Persister(func::FuncOp kernel)
      : kernel(kernel), body(kernel.getBody().front()),
        b(kernel.getLoc(), OpBuilder::atBlockBegin(&body)) {}

  void run() {
    Operation *first = &body.front();
    auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
    for (auto [dimension, extent] : llvm::enumerate(extents))
      extent = emitExtent(attribute, dimension);
    one = at.constant(1);
    heads = at.mul(extents[1], extents[2]);
    turn.place = gpu::BlockIdOp::create(b, gpu::Dimension::x);
    turn.places = gpu::GridDimOp::create(b, gpu::Dimension::x);
    // Before the body moves under it.
    bool inPairs = isUneven(kernel);
    int64_t tail = inPairs ? attribute.getSchedule().tail : 0;
    if (tail > 0)
      emitTail(tail);
    Value count = inPairs ? emitPairs() : emitShare(at.mul(extents[0], heads));
    auto loop = scf::ForOp::create(b, at.constant(0), count, one);
    moveBody(loop, first);
    b.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar();
    replaceIds(loop, inPairs ? emitOfPairs(number) : emitAt(emitPosition(number)));
    hoistScalars(loop);
    kernel->setAttr(TileDialect::kKernelAttrName, attribute.withBlocksThatStay(1 + tail));
  }

private:
  /// The grid's extent, which the launch computed before.
  Value emitExtent(KernelAttr attribute, unsigned dimension) {
    Value extent = at.constant(1);
    if (dimension >= attribute.getGrid().size())
      return extent;
    for (Attribute factor : cast<ArrayAttr>(attribute.getGrid()[dimension])) {
      auto size = dyn_cast<ExtentAttr>(factor);
      Value value = size ? emitFactor(size) : at.constant(cast<IntegerAttr>(factor).getInt());
      extent = at.mul(extent, value);
    }
    return extent;
  }
  Value emitFactor(ExtentAttr size) {
    Value extent = b.createOrFold<memref::DimOp>(kernel.getArgument(size.getArgument()),
                                                 at.constant(size.getDim()));
    if (size.getLess() != 0)
      extent = at.sub(extent, at.constant(size.getLess()));
    Value count = at.ceilDiv(at.mul(extent, at.constant(size.getMultiplier())),
                             at.constant(size.getDivisor()));
    return at.mul(count, at.constant(size.getUnit()));
  }

  /// Whether the block is one of those that stay, and its place among those or the others.
  void emitTail(int64_t tail) {
    Value block = turn.place, blocks = turn.places;
    staying = at.div(blocks, at.constant(1 + tail));
    stays = at.less(block, staying);
    turn.place = at.select(stays, block, at.sub(block, staying));
    turn.places = at.select(stays, staying, at.sub(blocks, staying));
  }

  /// Of so many in turns, those of this block.
  Value emitShare(Value count) {
    return at.div(at.add(count, at.sub(at.sub(turn.places, turn.place), one)), turn.places);
  }
  /// The same where rounds go backwards and forwards in turns.
  Value emitShareOfSingles(Value count) {
    Value rounds = at.div(count, turn.places);
    Value hasLast = at.less(emitPlace(emitIsOdd(rounds)), at.rem(count, turn.places));
    return at.select(hasLast, at.add(rounds, one), rounds);
  }
  /// The piece at the block's place in a round.
  Value emitPosition(Value round) { return at.add(at.mul(round, turn.places), turn.place); }

  Value emitIsOdd(Value number) { return at.equal(at.rem(number, at.constant(2)), one); }
  /// Where the block stands in a round of single pieces. The first goes backwards: what has one
  /// pair less comes last in rounds of pairs.
  Value emitPlace(Value isForwards) {
    return at.select(isForwards, turn.place, at.sub(at.sub(turn.places, turn.place), one));
  }

  std::array<Value, 3> emitHead(Value x, Value head) {
    return {x, at.rem(head, extents[1]), at.div(head, extents[1])};
  }
  std::array<Value, 3> emitAt(Value piece) {
    return emitHead(at.rem(piece, extents[0]), at.div(piece, extents[0]));
  }

  /// How many pieces the block has, of pairs and single ones.
  Value emitPairs() {
    Value two = at.constant(2), pieces = at.mul(extents[0], heads);
    Value most = at.mul(at.div(extents[0], two), heads);
    Value pairs = emitNumberOfPairs(most, pieces);
    Value divisor = at.max(heads, one);
    if (!stays)
      paired = at.mul(emitShare(pairs), two);
    least = at.div(pairs, divisor);
    richer = at.rem(pairs, divisor);
    Value singles = at.sub(pieces, at.mul(pairs, two));
    if (!stays)
      return at.add(paired, emitShareOfSingles(singles));
    Value share = emitShare(at.select(stays, pairs, singles)), ofPairs = at.mul(share, two);
    paired = at.select(stays, ofPairs, at.constant(0));
    return at.select(stays, ofPairs, share);
  }

  /// Of the `most` pairs of all heads, those that blocks that stay take.
  Value emitNumberOfPairs(Value most, Value pieces) {
    Value blocks = stays ? staying : turn.places;
    Value wanted =
        stays ? at.div(at.mul(most, at.constant(kStayingPairs)), at.constant(100)) : most;
    Value whole = at.sub(wanted, at.rem(wanted, blocks));
    // Short heads are read once: to come back for their last x costs more than uneven rounds.
    Value areLong = at.less(at.constant(kShortHead - 1), extents[0]);
    Value fillsRound = at.less(at.constant(0), whole);
    Value ofShort = at.select(at.less(blocks, pieces), most, at.constant(0));
    // A tail takes what fills no round.
    Value inRounds = stays ? areLong : at.both(areLong, fillsRound);
    return at.select(inRounds, whole, ofShort);
  }

  /// Where piece `number` of the block stands among pairs, or among single pieces.
  Value emitPositionOfPairs(Value number, Value isPair, Value isOdd) {
    Value half = at.div(number, at.constant(2));
    if (stays)
      return emitPosition(at.select(isPair, half, number));
    Value round = at.select(isPair, half, at.sub(number, paired));
    Value place = at.select(isPair, turn.place, emitPlace(isOdd));
    return at.add(at.mul(round, turn.places), place);
  }

  /// Piece `number` of the block. Pairs go head by head, those with one pair more first. Single
  /// pieces go x by x; the first two x are not single in richer heads.
  std::array<Value, 3> emitOfPairs(Value number) {
    Value zero = at.constant(0), two = at.constant(2);
    // Pieces of pairs are even, so that a single piece is odd where its round is. With a tail the
    // first is the same for all pieces, but then what follows from it would live as long.
    Value isPair = at.less(number, paired), isOdd = emitIsOdd(number);
    Value position = emitPositionOfPairs(number, isPair, isOdd);
    // Both are in two parts, of which one has `richer` heads and one has the others. Choices come
    // before arithmetic: what is the same for all pieces takes registers from tiles.
    Value inFirst = at.select(isPair, richer, at.sub(heads, richer));
    Value each = at.select(isPair, at.add(least, one), two);
    Value boundary = at.mul(inFirst, each);
    Value isBefore = at.less(position, boundary);
    Value index = at.sub(position, at.select(isBefore, zero, boundary));
    Value half = at.add(least, at.select(isBefore, one, zero));
    Value length = at.select(isPair, half, at.select(isBefore, inFirst, heads));
    Value divisor = at.max(length, one);
    Value quotient = at.div(index, divisor), rest = at.rem(index, divisor);

    Value last = at.sub(at.mul(half, two), one);
    Value ofPair = at.select(isOdd, at.sub(last, rest), rest);
    Value pairsBefore = at.add(least, at.select(isBefore, zero, one));
    Value x = at.select(isPair, ofPair, at.add(at.mul(pairsBefore, two), quotient));
    Value skipped = at.select(at.equal(isPair, isBefore), zero, richer);
    return emitHead(x, at.add(at.select(isPair, quotient, rest), skipped));
  }

  /// Moves the ops after the header, except the terminator, into the loop.
  void moveBody(scf::ForOp loop, Operation *first) {
    Block &to = *loop.getBody();
    to.getOperations().splice(to.begin(), body.getOperations(), first->getIterator(),
                              body.getTerminator()->getIterator());
  }

  static void replaceIds(scf::ForOp loop, std::array<Value, 3> position) {
    loop.walk([&](gpu::BlockIdOp id) {
      id.replaceAllUsesWith(position[unsigned(id.getDimension())]);
      id.erase();
    });
  }

  /// Scalars that are the same for all pieces are computed once, in front.
  static void hoistScalars(scf::ForOp loop) {
    auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
    moveLoopInvariantCode(
        {&loop.getRegion()},
        [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
        [&](Operation *op, Region *) {
          return isMemoryEffectFree(op) && isSpeculatable(op) && op->getNumRegions() == 0 &&
                 llvm::all_of(op->getResultTypes(), isScalar);
        },
        [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
  }

  func::FuncOp kernel;
  Block &body;
  ImplicitLocOpBuilder b;
  Indices at{b};
  Value one, extents[3], heads;
  /// The block's place among those that take pieces in turns with it.
  struct {
    Value place, places;
  } turn;
  /// With a tail, how many blocks stay, and whether this one does; else null.
  Value staying, stays;
  /// Pieces of this block that are in pairs, the pairs that each head has, and how many heads, the
  /// first ones, have one pair more.
  Value paired, least, richer;
};

struct PersistBlocksPass : KernelPass<attn::tile::impl::PersistBlocksPassBase<PersistBlocksPass>,
                                      attn::Room::Tile, attn::Room::Tile> {
  static LogicalResult check(func::FuncOp kernel, KernelAttr attribute) {
    auto isExtents = [](Attribute factors) {
      return llvm::all_of(cast<ArrayAttr>(factors), llvm::IsaPred<IntegerAttr, ExtentAttr>);
    };
    if (!llvm::all_of(attribute.getGrid(), isExtents))
      return kernel.emitOpError("expected a grid of extents for blocks that are to stay, got ")
             << attribute.getGrid();
    for (Attribute factors : attribute.getGrid())
      for (Attribute factor : cast<ArrayAttr>(factors))
        if (auto extent = dyn_cast<ExtentAttr>(factor))
          if (Type type = kernel.getArgumentTypes()[extent.getArgument()]; !isa<MemRefType>(type))
            return kernel.emitOpError(
                       "expected extents of memrefs for blocks that are to stay, got ")
                   << extent << " of " << type;
    if (attribute.getCluster())
      return kernel.emitOpError("expected no cluster of blocks that are to stay, got ")
             << attribute.getCluster();
    return success();
  }

  LogicalResult transformKernel(func::FuncOp kernel) override {
    auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
    if (!attribute.getSchedule().stay)
      return success();
    if (failed(check(kernel, attribute)))
      return failure();
    Persister(kernel).run();
    return success();
  }
};
} // namespace
