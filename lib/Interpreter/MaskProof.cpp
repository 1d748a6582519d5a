//===- MaskProof.cpp - visited tiles against the original mask --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/MaskProof.h"
#include "lib/Interpreter/Evaluator.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// OriginalMasks
//===----------------------------------------------------------------------------------------===//

Error OriginalMasks::Attention::evaluate(int64_t b, int64_t h, int64_t m, int64_t n,
                                         MutableArrayRef<Lane> keep) {
  if (mask)
    return mask->run(b, h, m, n, keep.size(), keep.data());
  fill(keep, Lane{.i = -1});
  return Error::success();
}

Expected<OriginalMasks> OriginalMasks::capture(func::FuncOp function,
                                               ArrayRef<RuntimeValue> arguments,
                                               const InterpreterOptions &options) {
  OriginalMasks originals;
  InterpreterOptions own = options;
  own.countOnly = true;
  own.proveAgainst = nullptr;
  Evaluator evaluator(own);
  evaluator.captureMasksInto(&originals);
  Expected<std::vector<RuntimeValue>> results = evaluator.call(function, arguments);
  if (!results)
    return results.takeError();
  return std::move(originals);
}

Error OriginalMasks::add(Attention attention) {
  for (const Attention &other : attentions)
    if (other.op == attention.op)
      return makeOpError(attention.op, "expected to run once, ran twice");
  attentions.push_back(std::move(attention));
  return Error::success();
}

/// The coordinates over which the passes of an op run: keys for attention and gradients of queries,
/// rows for those of keys and values.
static SmallVector<unsigned, 2> getPasses(Operation *op) {
  if (isa<AttentionGradKeyValueOp>(op))
    return {2};
  auto whole = dyn_cast<AttentionGradOp>(op);
  if (!whole)
    return {3};
  SmallVector<unsigned, 2> passes;
  if (whole.getDQuery())
    passes.push_back(3);
  if (whole.getDKey() || whole.getDValue())
    passes.push_back(2);
  return passes;
}

OriginalMasks::Attention *OriginalMasks::find(Operation *op) {
  if (attentions.size() == 1)
    return &attentions.front();
  unsigned running = cast<AbsorbingOpInterface>(op).getRunningPosition();
  Attention *found = nullptr;
  for (Attention &attention : attentions)
    if (attention.op->getLoc() == op->getLoc() && is_contained(getPasses(attention.op), running)) {
      if (found)
        return nullptr;
      found = &attention;
    }
  return found;
}

//===----------------------------------------------------------------------------------------===//
// MaskProver
//===----------------------------------------------------------------------------------------===//

void MaskProver::note(StringRef what, int64_t b, int64_t h, int64_t m, int64_t n) {
  if (!proof.first.empty())
    return;
  raw_string_ostream(proof.first) << what << " at b=" << b << " h=" << h << " m=" << m
                                  << " n=" << n;
}

Error MaskProver::visit(Operation *op, ArrayRef<int64_t> origin, int64_t rows, int64_t keys,
                        RegionProgram *mask) {
  OriginalMasks::Attention *attention = originals.find(op);
  if (!attention)
    return makeOpError(op, "expected the location of one attn.attention of the problem");
  int64_t extents[4] = {1, 1, rows, keys};
  for (int dim = 0; dim < 4; ++dim) {
    __int128 offset = __int128(origin[dim]) - attention->origin[dim];
    if (offset < 0 || offset + extents[dim] > attention->sizes[dim])
      return makeOpError(op, "expected a tile inside the problem, got " + Twine(origin[dim]) +
                                 " in dimension " + Twine(dim) + " of extent " +
                                 Twine(attention->sizes[dim]));
  }
  unsigned running = cast<AbsorbingOpInterface>(op).getRunningPosition();
  visited[{attention, running}][{origin[0], origin[1]}].push_back(
      {origin[2], origin[2] + rows, origin[3], origin[3] + keys, mask != nullptr});
  if (!mask)
    return Error::success();
  std::vector<Lane> own(keys), original(keys);
  for (int64_t m = origin[2]; m < origin[2] + rows; ++m) {
    if (Error error = mask->run(origin[0], origin[1], m, origin[3], keys, own.data()))
      return error;
    if (Error error = attention->evaluate(origin[0], origin[1], m, origin[3], original))
      return error;
    for (int64_t i = 0; i < keys; ++i)
      if ((own[i].i != 0) != (original[i].i != 0)) {
        ++proof.disagreements;
        note("another mask", origin[0], origin[1], m, origin[3] + i);
      }
  }
  return Error::success();
}

/// Asks the original mask about every element of one batch and head.
Error MaskProver::sweep(OriginalMasks::Attention &attention, int64_t b, int64_t h,
                        std::vector<Tile> &tiles) {
  enum Visit : uint8_t { None, Masked, Unmasked };
  int64_t keys = attention.sizes[3], firstKey = attention.origin[3];
  std::vector<Lane> keep(keys);
  std::vector<Visit> visits(keys);
  llvm::sort(tiles, [](const Tile &x, const Tile &y) { return x.rowBegin < y.rowBegin; });
  auto next = tiles.begin();
  std::vector<Tile> active;
  for (int64_t m = attention.origin[2]; m < attention.origin[2] + attention.sizes[2]; ++m) {
    erase_if(active, [&](const Tile &tile) { return tile.rowEnd <= m; });
    for (; next != tiles.end() && next->rowBegin <= m; ++next)
      if (next->rowEnd > m)
        active.push_back(*next);
    fill(visits, None);
    for (const Tile &tile : active)
      for (int64_t n = tile.keyBegin; n < tile.keyEnd; ++n) {
        Visit &visit = visits[n - firstKey];
        if (visit != None) {
          ++proof.revisited;
          note("visited twice", b, h, m, n);
        }
        visit = tile.isMasked ? Masked : Unmasked;
      }
    if (Error error = attention.evaluate(b, h, m, firstKey, keep))
      return error;
    for (int64_t i = 0; i < keys; ++i) {
      bool isKept = keep[i].i != 0;
      if (isKept && visits[i] == None) {
        ++proof.keptOutside;
        note("kept but in no tile", b, h, m, firstKey + i);
      } else if (!isKept && visits[i] == Unmasked) {
        ++proof.droppedInUnmasked;
        note("dropped but in a tile without mask", b, h, m, firstKey + i);
      }
    }
  }
  return Error::success();
}

Expected<MaskProof> MaskProver::finish() {
  for (OriginalMasks::Attention &attention : originals.getAttentions())
    for (unsigned running : getPasses(attention.op))
      for (int64_t b = attention.origin[0]; b < attention.origin[0] + attention.sizes[0]; ++b)
        for (int64_t h = attention.origin[1]; h < attention.origin[1] + attention.sizes[1]; ++h)
          if (Error error = sweep(attention, b, h, visited[{&attention, running}][{b, h}]))
            return std::move(error);
  return proof;
}

} // namespace attn
