//===- FindExtents.cpp - the extents that a function relies on --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// More than 500 lines: groups, expressions and rules grow together, as ops are visited.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/Extents/FindExtents.h"
#include "dialects/Attn/IR/AttnCacheOps.h"
#include "dialects/Attn/IR/AttnVariants.h"
#include "lib/Analysis/Extents/FindBatches.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;

namespace attn {

using TermKind = ExtentTerm::Kind;
using RuleKind = ExtentRule::Kind;

namespace {
class Finder {
public:
  explicit Finder(mlir::func::FuncOp function) : function(function) {}

  FunctionExtents run();

private:
  //===- Groups -----------------------------------------------------------------------------===//
  using Groups = SmallVector<unsigned, 4>;
  /// Of a tensor's dimensions; made when first asked for.
  const Groups &getGroups(mlir::Value value);
  unsigned addGroup() {
    classes.grow(numGroups + 1);
    return numGroups++;
  }
  void join(unsigned a, unsigned b) { classes.join(a, b); }
  void join(const Groups &a, const Groups &b) {
    for (auto [left, right] : zip(a, b))
      join(left, right);
  }
  void join(mlir::Value a, mlir::Value b) { join(Groups(getGroups(a)), Groups(getGroups(b))); }

  //===- Expressions ------------------------------------------------------------------------===//
  std::optional<Extent> getExtent(mlir::OpFoldResult value);
  std::optional<Extent> getExtent(mlir::Value value, unsigned depth = 0);
  std::optional<Extent> computeExtent(mlir::Value value, unsigned depth);
  void require(RuleKind kind, Extent left, Extent right, Letter letter = Letter::None) {
    extents.rules.push_back({kind, std::move(left), std::move(right), letter});
  }
  /// The group is the value.
  void define(mlir::Operation *op, unsigned group, mlir::OpFoldResult value);
  void setUnknown(mlir::Operation *op, const Twine &reason) {
    if (extents.unknown)
      return;
    extents.unknown = op;
    extents.reason = reason.str();
  }

  //===- Ops --------------------------------------------------------------------------------===//
  void visit(mlir::Operation *op);
  void visit(AttentionOp op);
  void visit(AttentionGradOp op);
  void visitScores(ScoredOpInterface op);
  void visitReads(ScoredOpInterface op, mlir::Region &region);
  void requireRead(ScoredOpInterface op, mlir::Value tensor, size_t dim, size_t position,
                   int64_t shift = 0);
  void visit(MergeOp op);
  void visit(PagedOp op);
  void visit(RaggedOp op);
  void visit(PlaceOp op);
  void visitMoved(mlir::Operation *op, const MovedRows &rows);
  void visit(ScaledOp op);
  void joinOffsets(unsigned batches, mlir::Value offsets);
  void visit(mlir::tensor::ExtractOp op);
  void visitSlice(mlir::OffsetSizeAndStrideOpInterface op, mlir::Value whole, mlir::Value part,
                  const SmallBitVector &dropped);
  void requireWithin(mlir::Operation *op, unsigned whole, mlir::OpFoldResult offset,
                     mlir::OpFoldResult size, mlir::OpFoldResult stride);
  void visit(mlir::linalg::LinalgOp op);
  void visit(mlir::func::ReturnOp op);

  //===- Letters ----------------------------------------------------------------------------===//
  /// The dimensions of the argument that a value is.
  ExtentDims *findArgument(mlir::Value value);
  void setLetters(ExtentDims *dims, ArrayRef<Letter> letters) {
    if (dims && dims->size() == letters.size())
      for (auto [dim, letter] : zip_equal(*dims, letters))
        if (dim.letter == Letter::None)
          dim.letter = letter;
  }
  void useLeaders();

  void dropKnownRules();

  mlir::func::FuncOp function;
  FunctionExtents extents;
  /// Groups that were made, of which some have become one.
  IntEqClasses classes;
  unsigned numGroups = 0;
  DenseMap<mlir::Value, Groups> groups;
  DenseMap<mlir::Value, std::optional<Extent>> expressions;
  /// Of offsets: the rows of all sequences.
  DenseMap<mlir::Value, unsigned> totals;
  /// Dimensions of arguments that regions read at positions; whole tensors name theirs first.
  struct Read {
    ExtentDims *dims;
    size_t dim;
    Letter letter;
  };
  SmallVector<Read> reads;
};
} // namespace

const Finder::Groups &Finder::getGroups(mlir::Value value) {
  auto [found, isNew] = groups.try_emplace(value);
  auto type = dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!isNew || !type)
    return found->second;
  // A call's extents are compared with the types of arguments before anything else.
  bool isArgument = isa<mlir::BlockArgument>(value);
  for (int64_t extent : type.getShape()) {
    unsigned group = addGroup();
    found->second.push_back(group);
    if (!mlir::ShapedType::isDynamic(extent) && !isArgument)
      require(RuleKind::Equal, makeExtent(group), makeConstant(extent));
  }
  return found->second;
}

//===----------------------------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------------------------===//

static std::optional<TermKind> getKind(mlir::Operation *op) {
  return TypeSwitch<mlir::Operation *, std::optional<TermKind>>(op)
      .Case([](mlir::arith::AddIOp) { return TermKind::Add; })
      .Case([](mlir::arith::SubIOp) { return TermKind::Sub; })
      .Case([](mlir::arith::MulIOp) { return TermKind::Mul; })
      .Case([](mlir::arith::DivSIOp) { return TermKind::Div; })
      .Case([](mlir::arith::FloorDivSIOp) { return TermKind::FloorDiv; })
      .Case([](mlir::arith::CeilDivSIOp) { return TermKind::CeilDiv; })
      .Case([](mlir::arith::RemSIOp) { return TermKind::Rem; })
      .Case([](mlir::arith::MinSIOp) { return TermKind::Min; })
      .Case([](mlir::arith::MaxSIOp) { return TermKind::Max; })
      .Default([](mlir::Operation *) { return std::nullopt; });
}

std::optional<Extent> Finder::getExtent(mlir::OpFoldResult value) {
  if (std::optional<int64_t> constant = mlir::getConstantIntValue(value))
    return makeConstant(*constant);
  return getExtent(cast<mlir::Value>(value));
}

std::optional<Extent> Finder::getExtent(mlir::Value value, unsigned depth) {
  if (auto found = expressions.find(value); found != expressions.end())
    return found->second;
  std::optional<Extent> extent = computeExtent(value, depth);
  expressions[value] = extent;
  return extent;
}

std::optional<Extent> Finder::computeExtent(mlir::Value value, unsigned depth) {
  if (std::optional<int64_t> constant = mlir::getConstantIntValue(value))
    return makeConstant(*constant);
  // Other integers may be narrower than the arithmetic here.
  if (!value.getType().isIndex())
    return std::nullopt;
  if (auto argument = dyn_cast<mlir::BlockArgument>(value)) {
    if (argument.getOwner() != &function.getBody().front())
      return std::nullopt;
    return makeExtent(extents.values[argument.getArgNumber()].front().group);
  }
  mlir::Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast<mlir::tensor::DimOp>(op)) {
    const Groups &source = getGroups(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!index || *index < 0 || *index >= int64_t(source.size()))
      return std::nullopt;
    return makeExtent(source[*index]);
  }
  std::optional<TermKind> kind = getKind(op);
  // An expression that uses its parts over and over would grow without bound.
  constexpr unsigned kMaxDepth = 32, kMaxTerms = 64;
  if (!kind || depth > kMaxDepth)
    return std::nullopt;
  std::optional<Extent> left = getExtent(op->getOperand(0), depth + 1),
                        right = getExtent(op->getOperand(1), depth + 1);
  if (!left || !right || left->size() + right->size() > kMaxTerms)
    return std::nullopt;
  left->append(*right);
  left->push_back({*kind, 0});
  return left;
}

void Finder::define(mlir::Operation *op, unsigned group, mlir::OpFoldResult value) {
  std::optional<Extent> extent = getExtent(value);
  if (!extent)
    return setUnknown(op, "expected extents and offsets that are sums, products and quotients of "
                          "arguments and their extents");
  if (std::optional<unsigned> same = getGroup(*extent))
    join(group, *same);
  else
    require(RuleKind::Equal, makeExtent(group), std::move(*extent));
}

//===----------------------------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------------------------===//

static constexpr Letter kPositions[] = {Letter::B, Letter::H, Letter::M, Letter::N};

/// The operands that attention and its gradients share.
void Finder::visitScores(ScoredOpInterface op) {
  Groups query = getGroups(op.getQuery()), key = getGroups(op.getKey()),
         value = getGroups(op.getValue());
  for (auto [a, b] :
       {std::pair(query[0], key[0]), std::pair(query[0], value[0]), std::pair(key[1], value[1]),
        std::pair(key[2], value[2]), std::pair(query[3], key[3])})
    join(a, b);
  if (op.getSink())
    join(Groups(ArrayRef(query).slice(1, op.getSink().getType().getRank())),
         getGroups(op.getSink()));
  require(RuleKind::Multiple, makeExtent(query[1]), makeExtent(key[1]));
  extents.attentions.push_back({query[0], query[1], key[1], query[2], key[2], query[3], value[3]});

  setLetters(findArgument(op.getQuery()), {Letter::B, Letter::H, Letter::M, Letter::D});
  setLetters(findArgument(op.getKey()), {Letter::B, Letter::Hkv, Letter::N, Letter::D});
  setLetters(findArgument(op.getValue()), {Letter::B, Letter::Hkv, Letter::N, Letter::Dv});
  if (op.getSink())
    setLetters(findArgument(op.getSink()),
               ArrayRef(kPositions).slice(1, op.getSink().getType().getRank()));
  for (mlir::Region *region : {&op.getScore(), &op.getMask()})
    visitReads(op, *region);
  // Tables of positions have the op's own extents; what is read there is of the whole.
  PositionsAttr positions = findPositions(op);
  size_t numPlaces = positions ? getCaptureRules(positions)->size() : 0;
  for (auto [number, rule, capture] : enumerate(getCaptureRules(op), op.getCaptures()))
    for (auto [dim, name] : enumerate(rule.dims)) {
      // M and N of a whole.
      if (name == '2')
        require(RuleKind::AtLeast, makeExtent(getGroups(capture)[dim]), makeConstant(2));
      for (auto [position, letter] : enumerate(kPositions))
        if (StringRef(&name, 1) == getName(letter) &&
            (number < numPlaces || readsOwn(op, position)))
          requireRead(op, capture, dim, position);
    }
}

void Finder::visit(AttentionOp op) {
  visitScores(op);
  Groups query = getGroups(op.getQuery()), value = getGroups(op.getValue());
  join({query[0], query[1], query[2], value[3]}, getGroups(op.getOutput()));
  for (mlir::Value rows : {op.getLse(), op.getLseLow()})
    if (rows)
      join({query[0], query[1], query[2]}, getGroups(rows));
}

/// The extents of a tensor hold for its gradient.
void Finder::visit(AttentionGradOp op) {
  visitScores(op);
  Groups query = getGroups(op.getQuery()), value = getGroups(op.getValue()),
         output = {query[0], query[1], query[2], value[3]}, lse = {query[0], query[1], query[2]};
  for (mlir::Value like : {op.getOutput(), op.getDOutput()}) {
    join(output, getGroups(like));
    setLetters(findArgument(like), {Letter::B, Letter::H, Letter::M, Letter::Dv});
  }
  for (mlir::Value like : {op.getLse(), op.getLseLow(), op.getDLse()})
    if (like) {
      join(lse, getGroups(like));
      setLetters(findArgument(like), {Letter::B, Letter::H, Letter::M});
    }
  for (auto [gradient, source] :
       {std::pair<mlir::Value, mlir::Value>{op.getDQuery(), op.getQuery()},
        {op.getDKey(), op.getKey()},
        {op.getDValue(), op.getValue()},
        {op.getDSink(), op.getSink()}})
    if (gradient)
      join(gradient, source);
  for (auto [gradient, source] : zip_equal(op.getDWrt(), op.getWrt()))
    join(gradient, source);
}

/// A dimension that is read at the positions b, h, m or n of an op, or `shift` places after them.
void Finder::requireRead(ScoredOpInterface op, mlir::Value tensor, size_t dim, size_t position,
                         int64_t shift) {
  const auto &letters = extents.attentions.back();
  unsigned group = getGroups(tensor)[dim];
  Letter letter = kPositions[position];
  Extent end = makeExtent(letters[size_t(letter)]);
  if (!op.getOrigin().empty()) {
    // As for any computed index, it is the caller who knows where else positions may begin.
    std::optional<Extent> origin = getExtent(op.getOrigin()[position]);
    if (!origin)
      return;
    require(RuleKind::AtLeast, *origin, makeConstant(0));
    end.append(*origin);
    end.push_back({TermKind::Add, 0});
    letter = Letter::None;
  }
  if (shift != 0) {
    end.append({{TermKind::Constant, shift}, {TermKind::Add, 0}});
    letter = Letter::None;
  }
  require(RuleKind::AtLeast, makeExtent(group), std::move(end), letter);
  ExtentDims *dims = shift == 0 ? findArgument(tensor) : nullptr;
  if (dims)
    reads.push_back({dims, dim, kPositions[position]});
}

/// The argument that an index is, or the one a constant number of places before it.
static std::pair<mlir::BlockArgument, int64_t> findPosition(mlir::Value index) {
  constexpr int64_t kMostPlaces = int64_t(1) << 62;
  int64_t shift = 0;
  while (mlir::Operation *op = index.getDefiningOp()) {
    if (!isa<mlir::arith::AddIOp, mlir::arith::SubIOp>(op) || !index.getType().isIndex())
      return {};
    bool isFirst = isa<mlir::arith::AddIOp>(op) && mlir::getConstantIntValue(op->getOperand(0));
    std::optional<int64_t> places = mlir::getConstantIntValue(op->getOperand(isFirst ? 0 : 1));
    if (!places || *places < -kMostPlaces || *places > kMostPlaces)
      return {};
    shift += isa<mlir::arith::SubIOp>(op) ? -*places : *places;
    if (shift < -kMostPlaces || shift > kMostPlaces)
      return {};
    index = op->getOperand(isFirst ? 1 : 0);
  }
  return {cast<mlir::BlockArgument>(index), shift};
}

/// A tensor read at [%h, %n + 2] has at least H rows and N + 2 columns: the region's last four
/// arguments are the positions.
void Finder::visitReads(ScoredOpInterface op, mlir::Region &region) {
  if (region.empty())
    return;
  unsigned first = region.getNumArguments() - 4;
  region.walk([&](mlir::tensor::ExtractOp extract) {
    for (auto [dim, index] : enumerate(extract.getIndices())) {
      auto [argument, shift] = findPosition(index);
      bool isPosition =
          argument && argument.getOwner() == &region.front() && argument.getArgNumber() >= first;
      if (isPosition && !readsOwn(op, argument.getArgNumber() - first))
        continue;
      if (isPosition && shift >= 0)
        requireRead(op, extract.getTensor(), dim, argument.getArgNumber() - first, shift);
      else if (std::optional<Extent> extent = getExtent(index))
        requireWithin(extract, getGroups(extract.getTensor())[dim], index,
                      mlir::OpBuilder(extract).getIndexAttr(1),
                      mlir::OpBuilder(extract).getIndexAttr(1));
    }
  });
}

/// Whether a view is of values alone, which have columns of their own.
static bool isValue(mlir::Operation *view) {
  return llvm::none_of(view->getUsers(), [&](mlir::Operation *user) {
    auto scored = dyn_cast<ScoredOpInterface>(user);
    return (isa<ScaledOp>(user) && !isValue(user)) ||
           (scored &&
            (scored.getKey() == view->getResult(0) || scored.getQuery() == view->getResult(0)));
  });
}

void Finder::visit(PagedOp op) {
  Groups pool = getGroups(op.getPool()), table = getGroups(op.getTable()), view = getGroups(op);
  join(view[0], table[0]);
  join(view[1], pool[2]);
  join(view[3], pool[3]);
  Extent keys = makeExtent(table[1]);
  keys.append({{TermKind::Constant, op.getPageSize()}, {TermKind::Mul, 0}});
  require(RuleKind::Equal, makeExtent(view[2]), std::move(keys));
  // s19: where entries are, so is a page that their place in memory can be.
  Extent least = makeExtent(table[1]);
  least.append({{TermKind::Constant, 1}, {TermKind::Min, 0}});
  require(RuleKind::AtLeast, makeExtent(pool[0]), std::move(least), Letter::Np);
  setLetters(findArgument(op.getTable()), {Letter::B, Letter::C});
  setLetters(findArgument(op.getPool()),
             {Letter::Np, Letter::P, Letter::Hkv, isValue(op) ? Letter::Dv : Letter::D});
}

/// There is an offset more than there are sequences.
void Finder::joinOffsets(unsigned batches, mlir::Value offsets) {
  unsigned group = getGroups(offsets)[0];
  Extent one = makeConstant(1), fewer = makeExtent(group), more = makeExtent(batches);
  fewer.append({one[0], {TermKind::Sub, 0}});
  more.append({one[0], {TermKind::Add, 0}});
  require(RuleKind::AtLeast, makeExtent(group), std::move(one));
  // Either may tell the other.
  require(RuleKind::Equal, makeExtent(batches), std::move(fewer));
  require(RuleKind::Equal, makeExtent(group), std::move(more));
}

void Finder::visit(RaggedOp op) {
  Groups rows = getGroups(op.getRows()), view = getGroups(op);
  join(view[1], rows[1]);
  join(Groups(drop_begin(view, 3)), Groups(drop_begin(rows, 2)));
  joinOffsets(view[0], op.getOffsets());
  // s20: the same offsets are of as many rows.
  join(totals.try_emplace(op.getOffsets(), rows[0]).first->second, rows[0]);
  define(op, view[2], op.getUpTo());
  // s20: a row that is not there has a place all the same.
  Extent least = makeExtent(view[2]);
  least.append({{TermKind::Constant, 1}, {TermKind::Min, 0}});
  require(RuleKind::AtLeast, makeExtent(rows[0]), std::move(least), Letter::T);
  bool isOfQueries = llvm::any_of(op->getUsers(), [&](mlir::Operation *user) {
    auto scored = dyn_cast<ScoredOpInterface>(user);
    return scored && scored.getKey() != op.getResult() && scored.getValue() != op.getResult();
  });
  const Letter letters[] = {Letter::T, isOfQueries ? Letter::H : Letter::Hkv,
                            isValue(op) ? Letter::Dv : Letter::D};
  setLetters(findArgument(op.getRows()), ArrayRef(letters).take_front(rows.size()));
  // The most rows have the letter of the size that they are.
  auto dim = op.getUpTo().getDefiningOp<mlir::tensor::DimOp>();
  ExtentDims *dims = dim ? findArgument(dim.getSource()) : findArgument(op.getUpTo());
  size_t index = dim ? dim.getConstantIndex().value_or(-1) : 0;
  if (dims && index < dims->size() && (*dims)[index].letter == Letter::None)
    (*dims)[index].letter = isOfQueries ? Letter::M : Letter::N;
}

void Finder::visit(PlaceOp op) {
  Groups source = getGroups(op.getSource()), dest = getGroups(op.getDest());
  joinOffsets(source[0], op.getOffsets());
  join(source[1], dest[1]);
  join(Groups(drop_begin(source, 3)), Groups(drop_begin(dest, 2)));
  join(op.getDest(), op.getResult());
}

void Finder::visitMoved(mlir::Operation *op, const MovedRows &rows) {
  Groups source = getGroups(rows.source), dest = getGroups(rows.dest);
  if (source.empty())
    return setUnknown(op, "expected tensors");
  bool hasPages = bool(rows.slots);
  join(Groups(drop_begin(source, hasPages)), Groups(drop_begin(dest, hasPages ? 2 : 0)));
  for (mlir::Value numbers : {rows.slots, rows.positions})
    if (numbers)
      join(source[0], getGroups(numbers)[0]);
  if (rows.cos) {
    join(rows.cos, rows.sin);
    // s28: a position beyond the tables reads their nearest line.
    require(RuleKind::AtLeast, makeExtent(getGroups(rows.cos)[0]), makeConstant(1));
  }
  join(rows.dest, op->getResult(0));
  setLetters(findArgument(rows.source), {Letter::T, hasPages ? Letter::Hkv : Letter::H, Letter::D});
}

void Finder::visit(MergeOp op) {
  Groups partial = getGroups(op.getPartial()), logarithms = getGroups(op.getPartialLse()),
         output = getGroups(op.getOutput());
  // Of buffers nothing is known here.
  if (partial.empty())
    return setUnknown(op, "expected tensors");
  join(logarithms, partial);
  if (op.getPartialLow())
    join(getGroups(op.getPartialLow()), partial);
  join(Groups(drop_begin(partial)), output);
  for (mlir::Value rows : {op.getLse(), op.getLseLow()})
    if (rows)
      join(output, getGroups(rows));
  for (auto [init, result] : zip(op.getDpsInits(), op->getResults()))
    join(init, result);
}

/// `whole` holds [offset, offset + size * stride).
void Finder::requireWithin(mlir::Operation *op, unsigned whole, mlir::OpFoldResult offset,
                           mlir::OpFoldResult size, mlir::OpFoldResult stride) {
  std::optional<Extent> begin = getExtent(offset), count = getExtent(size);
  std::optional<int64_t> step = mlir::getConstantIntValue(stride);
  if (!begin || !count || !step || *step < 1)
    return setUnknown(op, "expected extents and offsets that are sums, products and quotients of "
                          "arguments and their extents, and constant steps from 1 on");
  require(RuleKind::AtLeast, *begin, makeConstant(0));
  require(RuleKind::AtLeast, *count, makeConstant(0));
  // offset + (size - 1) * stride + 1
  Extent end = std::move(*count);
  if (*step != 1)
    end.append({{TermKind::Constant, 1},
                {TermKind::Sub, 0},
                {TermKind::Constant, *step},
                {TermKind::Mul, 0},
                {TermKind::Constant, 1},
                {TermKind::Add, 0}});
  if (*begin != makeConstant(0)) {
    end.append(*begin);
    end.push_back({TermKind::Add, 0});
  }
  require(RuleKind::AtLeast, makeExtent(whole), std::move(end));
}

void Finder::visitSlice(mlir::OffsetSizeAndStrideOpInterface op, mlir::Value whole,
                        mlir::Value part, const SmallBitVector &dropped) {
  Groups outer = getGroups(whole), inner = getGroups(part);
  SmallVector<mlir::OpFoldResult> offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(),
                                  strides = op.getMixedStrides();
  size_t next = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (!dropped.test(dim) && next < inner.size())
      define(op, inner[next++], sizes[dim]);
    requireWithin(op, outer[dim], offsets[dim], sizes[dim], strides[dim]);
  }
}

void Finder::visit(mlir::linalg::LinalgOp op) {
  SmallVector<std::optional<unsigned>> loops(op.getNumLoops());
  for (mlir::OpOperand &operand : op->getOpOperands()) {
    if (!isa<mlir::RankedTensorType>(operand.get().getType()))
      continue;
    Groups dims = getGroups(operand.get());
    for (auto [dim, index] : zip(dims, op.getMatchingIndexingMap(&operand).getResults())) {
      auto loop = dyn_cast<mlir::AffineDimExpr>(index);
      if (!loop)
        return setUnknown(op, "expected indexing maps of dimensions alone");
      std::optional<unsigned> &group = loops[loop.getPosition()];
      if (group)
        join(*group, dim);
      group = dim;
    }
  }
  for (auto [init, result] : zip(op.getDpsInits(), op->getResults()))
    join(init, result);
}

/// A scale for each head that is read, or for fewer, and for each block of rows.
void Finder::visit(ScaledOp op) {
  Groups source = getGroups(op.getSource()), scale = getGroups(op.getScale());
  join(op.getSource(), op.getResult());
  auto type = cast<mlir::RankedTensorType>(op.getScale().getType());
  if (scale.empty())
    return;
  if (type.getDimSize(0) != 1)
    join(source[0], scale[0]);
  require(RuleKind::Multiple, makeExtent(source[1]), makeExtent(scale[1]));
  SmallVector<Letter, 3> letters = {Letter::B, Letter::Hkv};
  if (op.getBlock()) {
    Extent blocks = makeExtent(source[2]);
    blocks.append({{TermKind::Constant, int64_t(*op.getBlock())}, {TermKind::CeilDiv, 0}});
    require(RuleKind::Equal, makeExtent(scale[2]), std::move(blocks));
    letters.push_back(Letter::None);
  }
  setLetters(findArgument(op.getScale()), letters);
}

void Finder::visit(mlir::tensor::ExtractOp op) {
  mlir::OpFoldResult one = mlir::OpBuilder(op).getIndexAttr(1);
  for (auto [group, index] : zip(Groups(getGroups(op.getTensor())), op.getIndices()))
    requireWithin(op, group, index, one, one);
}

void Finder::visit(mlir::func::ReturnOp op) {
  for (auto [index, value] : enumerate(op.getOperands())) {
    ExtentDims &dims = extents.values[function.getNumArguments() + index];
    if (!isa<mlir::RankedTensorType>(value.getType()))
      continue;
    for (auto [dim, group] : zip(dims, Groups(getGroups(value))))
      join(dim.group, group);
    if (auto place = value.getDefiningOp<PlaceOp>()) {
      value = place.getSource();
      auto gradient = value.getDefiningOp<AttentionGradOp>();
      bool isOfKeys = gradient && value != gradient.getDQuery();
      setLetters(&dims, {Letter::T, isOfKeys ? Letter::Hkv : Letter::H,
                         gradient && value != gradient.getDValue() ? Letter::D : Letter::Dv});
      setLetters(&dims, {Letter::T, Letter::H});
    }
    auto attention = value.getDefiningOp<AttentionOp>();
    if (attention && value == attention.getOutput())
      setLetters(&dims, {Letter::B, Letter::H, Letter::M, Letter::Dv});
    else if (attention)
      setLetters(&dims, {Letter::B, Letter::H, Letter::M});
  }
}

void Finder::visit(mlir::Operation *op) {
  auto isTensor = [](mlir::Type type) { return isa<mlir::TensorType>(type); };
  TypeSwitch<mlir::Operation *>(op)
      .Case<AttentionOp, AttentionGradOp, MergeOp, PagedOp, RaggedOp, PlaceOp, ScaledOp,
            mlir::tensor::ExtractOp, mlir::linalg::LinalgOp, mlir::func::ReturnOp>(
          [&](auto op) { visit(op); })
      .Case<AppendOp, RotaryOp>([&](auto op) { visitMoved(op, *MovedRows::find(op)); })
      .Case<mlir::tensor::CastOp, AssumeOp>(
          [&](auto op) { join(op->getOperand(0), op->getResult(0)); })
      .Case([&](mlir::tensor::EmptyOp op) {
        for (auto [group, size] : zip(Groups(getGroups(op)), op.getMixedSizes()))
          define(op, group, size);
      })
      .Case([&](mlir::tensor::ExtractSliceOp op) {
        visitSlice(op, op.getSource(), op.getResult(), op.getDroppedDims());
      })
      .Case([&](mlir::tensor::InsertSliceOp op) {
        visitSlice(op, op.getDest(), op.getSource(), op.getDroppedDims());
        join(op.getDest(), op.getResult());
      })
      .Case([](mlir::tensor::DimOp) {})
      .Default([&](mlir::Operation *op) {
        if (none_of(op->getOperandTypes(), isTensor) && none_of(op->getResultTypes(), isTensor) &&
            op->getNumRegions() == 0)
          return;
        if (!op->hasTrait<mlir::OpTrait::Elementwise>() && !isa<mlir::arith::ConstantOp>(op))
          return setUnknown(op, "expected ops whose extents are known: attention, merge, casts, "
                                "slices, linalg and elementwise ops");
        for (mlir::Value operand : op->getOperands())
          if (isTensor(operand.getType()))
            join(operand, op->getResult(0));
      });
}

//===----------------------------------------------------------------------------------------===//
// Arguments and groups
//===----------------------------------------------------------------------------------------===//

ExtentDims *Finder::findArgument(mlir::Value value) {
  if (auto scaled = value.getDefiningOp<ScaledOp>())
    value = scaled.getSource();
  std::optional<unsigned> number = findArgumentNumber(function, value);
  return number ? &extents.values[*number] : nullptr;
}

/// Numbers the groups from 0 on.
void Finder::useLeaders() {
  SmallVector<std::optional<unsigned>> numbers(numGroups);
  auto rename = [&](auto &group) {
    std::optional<unsigned> &number = numbers[classes.findLeader(group)];
    if (!number)
      number = extents.numGroups++;
    group = *number;
  };
  for (ExtentDims &dims : extents.values)
    for (ExtentDim &dim : dims)
      rename(dim.group);
  for (ExtentRule &rule : extents.rules)
    for (Extent *extent : {&rule.left, &rule.right})
      for (ExtentTerm &term : *extent)
        if (term.kind == TermKind::Group)
          rename(term.value);
  for (auto &letters : extents.attentions)
    for (unsigned &group : letters)
      rename(group);
}

/// Without what is true of itself, of constants, or by the types of arguments and results, which a
/// call's tensors are compared with.
void Finder::dropKnownRules() {
  SmallVector<std::optional<int64_t>> statics(extents.numGroups);
  auto types = concat<const mlir::Type>(function.getArgumentTypes(), function.getResultTypes());
  for (auto [type, dims] : zip(types, extents.values))
    if (auto tensor = dyn_cast<mlir::RankedTensorType>(type))
      for (auto [dim, extent] : zip_equal(dims, tensor.getShape()))
        if (!mlir::ShapedType::isDynamic(extent))
          statics[dim.group] = extent;
  SmallVector<ExtentRule> kept;
  for (ExtentRule &rule : extents.rules) {
    bool isKnown = rule.left == rule.right || is_contained(kept, rule);
    std::optional<unsigned> group = getGroup(rule.left);
    if (rule.right.size() == 1 && rule.right[0].kind == TermKind::Constant) {
      int64_t right = rule.right[0].value;
      if (rule.kind == RuleKind::Equal)
        isKnown |= group && statics[*group] == right;
      else if (rule.left.size() == 1 && rule.left[0].kind == TermKind::Constant)
        isKnown |= rule.kind == RuleKind::AtLeast && rule.left[0].value >= right;
    }
    if (!isKnown)
      kept.push_back(std::move(rule));
  }
  extents.rules = std::move(kept);
}

//===----------------------------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------------------------===//

FunctionExtents Finder::run() {
  extents.values.resize(function.getNumArguments() + function.getNumResults());
  if (function.isExternal())
    return std::move(extents);
  for (mlir::BlockArgument argument : function.getArguments()) {
    ExtentDims &dims = extents.values[argument.getArgNumber()];
    for (unsigned group : getGroups(argument))
      dims.push_back({Letter::None, group});
    if (argument.getType().isIndex())
      dims.push_back({Letter::None, addGroup()});
  }
  for (auto [index, type] : enumerate(function.getResultTypes()))
    if (auto tensor = dyn_cast<mlir::RankedTensorType>(type))
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
        extents.values[function.getNumArguments() + index].push_back({Letter::None, addGroup()});
  for (mlir::Operation &op : function.getBody().front())
    visit(&op);
  if (!function.getBody().hasOneBlock())
    setUnknown(function, "expected a function of one block");
  for (const Read &read : reads)
    if (ExtentDim &dim = (*read.dims)[read.dim]; dim.letter == Letter::None)
      dim.letter = read.letter;
  useLeaders();
  if (!extents.unknown)
    extents.batches = findBatches(function, extents);
  dropKnownRules();
  return std::move(extents);
}

FunctionExtents findExtents(mlir::func::FuncOp function) { return Finder(function).run(); }

} // namespace attn
