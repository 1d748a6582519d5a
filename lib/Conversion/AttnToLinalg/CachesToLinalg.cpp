//===- CachesToLinalg.cpp - the definitions of rows on their way into caches ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "lib/Conversion/AttnToLinalg/Reference.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

using It = utils::IteratorType;
using OFRs = SmallVector<OpFoldResult>;

static Value emitIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// s28: the rows (T, H, D), turned, in the elements of the source.
static Value defineTurned(Reference &b, const MovedRows &rows) {
  constexpr int64_t T = 0, H = 1, D = 2;
  Location loc = b.getLoc();
  auto type = cast<RankedTensorType>(rows.source.getType());
  Value empty =
      tensor::EmptyOp::create(b, tensor::getMixedSizes(b, loc, rows.source), type.getElementType());
  int64_t pairs = rows.countPairs();
  SmallVector<int64_t> all = {T, H, D};
  return b.loop(
      rows.source, empty, {all, all}, SmallVector<It>(3, It::parallel),
      [&](Reference &r, ValueRange args) -> Value {
        auto index = [&](int64_t value) { return emitIndex(r, loc, value); };
        auto is = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
          return arith::CmpIOp::create(r, predicate, x, y);
        };
        Value last =
            arith::SubIOp::create(r, tensor::DimOp::create(r, rows.cos, 0).getResult(), index(1));
        Value position = tensor::ExtractOp::create(r, rows.positions, r.index(T));
        Value line = arith::IndexCastOp::create(r, r.getIndexType(), position);
        line =
            arith::MaxSIOp::create(r, arith::MinSIOp::create(r, line, last).getResult(), index(0));
        // Columns that are not turned read the first pair.
        Value isTurned = is(arith::CmpIPredicate::ult, r.index(D), index(2 * pairs));
        Value column = r.select(isTurned, r.index(D), index(0));
        Value apart = index(rows.isInterleaved ? 1 : pairs), isFirst, pair;
        if (rows.isInterleaved) {
          pair = arith::DivUIOp::create(r, column, index(2));
          isFirst =
              is(arith::CmpIPredicate::eq, arith::RemUIOp::create(r, column, index(2)), index(0));
        } else {
          pair = arith::RemUIOp::create(r, column, index(pairs));
          isFirst = is(arith::CmpIPredicate::ult, column, index(pairs));
        }
        Value partner = r.select(isFirst, arith::AddIOp::create(r, column, apart),
                                 arith::SubIOp::create(r, column, apart));
        auto read = [&](Value tensor, ValueRange at) {
          return r.toReal(tensor::ExtractOp::create(r, tensor, at));
        };
        Value cos = read(rows.cos, {line, pair}), sin = read(rows.sin, {line, pair});
        Value other = read(rows.source, {r.index(T), r.index(H), partner});
        Value turned = arith::MulFOp::create(r, r.toReal(args[0]), cos),
              added = arith::MulFOp::create(r, other, sin);
        turned = r.select(isFirst, arith::SubFOp::create(r, turned, added),
                          arith::AddFOp::create(r, turned, added));
        return r.select(isTurned, arith::TruncFOp::create(r, type.getElementType(), turned),
                        args[0]);
      });
}

/// s23: row by row.
static Value defineAppended(Reference &b, const MovedRows &rows, Value source) {
  Location loc = b.getLoc();
  Value zero = emitIndex(b, loc, 0), one = emitIndex(b, loc, 1);
  Value count = tensor::DimOp::create(b, source, 0);
  auto loop = scf::ForOp::create(b, zero, count, one, ValueRange{rows.dest});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value row = loop.getInductionVar(), page = tensor::DimOp::create(b, rows.dest, 1),
        slots = arith::MulIOp::create(b, tensor::DimOp::create(b, rows.dest, 0).getResult(), page),
        slot = arith::IndexCastOp::create(
            b, b.getIndexType(), tensor::ExtractOp::create(b, rows.slots, row).getResult());
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, slot, slots);
  // A row that goes nowhere has no heads.
  OFRs sizes = tensor::getMixedSizes(b, loc, source);
  Value heads = b.select(exists, tensor::DimOp::create(b, source, 1), zero);
  slot = b.select(exists, slot, zero);
  // Nothing is divided by the rows of a page without rows.
  page = arith::MaxUIOp::create(b, page, one);
  OpFoldResult none = b.getIndexAttr(0), step = b.getIndexAttr(1);
  auto type = cast<RankedTensorType>(source.getType());
  Value moved = tensor::ExtractSliceOp::create(
      b, type.clone({ShapedType::kDynamic, type.getDimSize(2)}), source, OFRs{row, none, none},
      OFRs{step, heads, sizes[2]}, OFRs(3, step));
  Value next = tensor::InsertSliceOp::create(b, moved, loop.getRegionIterArgs()[0],
                                             OFRs{arith::DivUIOp::create(b, slot, page).getResult(),
                                                  arith::RemUIOp::create(b, slot, page).getResult(),
                                                  none, none},
                                             OFRs{step, step, heads, sizes[2]}, OFRs(4, step));
  scf::YieldOp::create(b, next);
  return loop.getResult(0);
}

Value attn::defineMovedRows(Reference &b, Operation *op) {
  MovedRows rows = *MovedRows::find(op);
  Value source = rows.cos ? defineTurned(b, rows) : rows.source;
  return rows.slots ? defineAppended(b, rows, source) : source;
}
