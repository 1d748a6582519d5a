//===- Meetings.cpp - where the threads of a block without roles meet -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Tile/Meetings.h"
#include "dialects/Tile/IR/TileClearOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace attn::tile;

namespace {
/// The places that threads have accessed since they met: some have read them, some have written
/// them, or they have started copies to them and not waited for their shares.
struct Accesses {
  llvm::DenseSet<Value> read, written, coming;

  void add(const Accesses &other) {
    read.insert_range(other.read);
    written.insert_range(other.written);
    coming.insert_range(other.coming);
  }
  /// Threads wait for their shares.
  void wait() {
    written.insert_range(coming);
    coming.clear();
  }
  void meet() {
    read.clear();
    written.clear();
  }
};

class Meetings {
public:
  explicit Meetings(func::FuncOp kernel) : kernel(kernel), b(kernel.getContext()) {}

  void run() {
    Accesses now;
    Block &body = kernel.getBody().front();
    run(body, now);
    // Copies for loops that had no turns.
    if (!now.coming.empty())
      wait(body.getTerminator(), now);
  }

private:
  /// Stages of rings follow a protocol of their own (RunAhead.cpp).
  static bool isPlace(Value value) {
    return isa<SharedType>(value.getType()) && value.getDefiningOp<AllocSharedOp>();
  }

  void wait(Operation *op, Accesses &now) {
    b.setInsertionPoint(op);
    CopyWaitOp::create(b, op->getLoc());
    now.wait();
  }

  void meet(Operation *op, Accesses &now) {
    b.setInsertionPoint(op);
    SyncOp::create(b, op->getLoc());
    now.meet();
  }

  /// Before `op` writes to a place or starts to copy to it.
  void beforeWrite(Operation *op, Value place, Accesses &now) {
    if (now.coming.contains(place))
      wait(op, now);
    if (now.read.contains(place) || now.written.contains(place))
      meet(op, now);
  }

  void beforeRead(Operation *op, Value place, Accesses &now) {
    if (now.coming.contains(place))
      wait(op, now);
    if (now.written.contains(place))
      meet(op, now);
    now.read.insert(place);
  }

  /// All threads have read the place before any clears it, and see it cleared before any reads it
  /// again. Marks of what is read are written in between.
  void clear(ClearUnreadOp op, Accesses &now) {
    if (isPlace(op.getValues()))
      beforeRead(op, op.getValues(), now);
    Location loc = op.getLoc();
    b.setInsertionPoint(op);
    Value condition = op.getCondition();
    if (!condition)
      condition = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    Value marks;
    if (op.getBy()) {
      marks = getMarks();
      MarkReadOp::create(b, loc, op.getBy(), marks);
    }
    SyncOp::create(b, loc);
    ClearUnreadOp::create(b, loc, Type(), op.getValues(), marks, op.getFrom(), Value());
    SyncOp::create(b, loc);
    op.erase();
  }

  Value getMarks() {
    if (!marks) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&kernel.getBody().front());
      int64_t warpgroups =
          kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName).getWarpgroups();
      int64_t warps = attn::plan::getMachine(kernel).getWarps(warpgroups);
      marks = AllocSharedOp::create(b, kernel.getLoc(), getMarksType(b.getContext(), warps),
                                    IntegerAttr());
    }
    return marks;
  }

  /// The accesses of the op and of all inside of it, in any order.
  static Accesses collect(Operation *op) {
    Accesses all;
    op->walk([&](Operation *inner) {
      if (auto copy = dyn_cast<CopyShareOp>(inner)) {
        if (isPlace(copy.getDest()))
          all.coming.insert(copy.getDest());
      } else if (auto store = dyn_cast<StoreOp>(inner)) {
        if (isPlace(store.getDest()))
          all.written.insert(store.getDest());
      } else {
        all.read.insert_range(llvm::make_filter_range(inner->getOperands(), isPlace));
      }
    });
    return all;
  }

  void run(Operation *op, Accesses &now) {
    if (isa<CopyWaitOp>(op)) {
      now.wait();
    } else if (isa<SyncOp>(op)) {
      now.meet();
    } else if (auto copy = dyn_cast<CopyShareOp>(op); copy && isPlace(copy.getDest())) {
      beforeWrite(op, copy.getDest(), now);
      now.coming.insert(copy.getDest());
    } else if (auto store = dyn_cast<StoreOp>(op); store && isPlace(store.getDest())) {
      beforeWrite(op, store.getDest(), now);
      now.written.insert(store.getDest());
    } else if (auto clearing = dyn_cast<ClearUnreadOp>(op)) {
      clear(clearing, now);
    } else if (op->getNumRegions() > 0) {
      runRegions(op, now);
    } else {
      for (Value operand : op->getOperands())
        if (isPlace(operand))
          beforeRead(op, operand, now);
    }
  }

  /// A turn of a loop follows what came before, or any other turn.
  void runRegions(Operation *op, Accesses &now) {
    if (isa<LoopLikeOpInterface>(op))
      now.add(collect(op));
    Accesses before = now;
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        Accesses inside = before;
        run(block, inside);
        now.add(inside);
      }
  }

  void run(Block &block, Accesses &now) {
    for (Operation &op : llvm::make_early_inc_range(block))
      run(&op, now);
  }

  func::FuncOp kernel;
  OpBuilder b;
  Value marks;
};
} // namespace

void attn::tile::meetBetweenAccesses(func::FuncOp kernel) { Meetings(kernel).run(); }
