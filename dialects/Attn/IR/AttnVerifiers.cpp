//===- AttnVerifiers.cpp - constraints of the attn ops, by number --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each check names its constraint in dialects/Attn/README.md; the test of `// attention_c4` is
// `@attention_c4`.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVerifiers.h"
#include "dialects/Attn/IR/AttnVariants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

bool attn::agree(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

std::string attn::stringifyExtent(int64_t size) {
  return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

LogicalResult attn::checkRank(Operation *op, StringRef name, Type type, int64_t rank,
                              StringRef dims) {
  auto shaped = cast<ShapedType>(type);
  if (shaped.getRank() == rank)
    return success();
  return op->emitOpError("expected ") << name << " of rank " << rank << " " << dims << ", got rank "
                                      << shaped.getRank() << " in " << type;
}

LogicalResult attn::checkExtent(Operation *op, StringRef dim, StringRef a, int64_t sizeA,
                                StringRef b, int64_t sizeB) {
  if (agree(sizeA, sizeB))
    return success();
  return op->emitOpError("expected ")
         << dim << " of " << a << " and " << b << " to agree, got " << stringifyExtent(sizeA)
         << " and " << stringifyExtent(sizeB);
}

LogicalResult attn::checkElement(Operation *op, StringRef name, Type type, bool (*allowed)(Type),
                                 StringRef list) {
  Type element = cast<ShapedType>(type).getElementType();
  if (allowed(element))
    return success();
  return op->emitOpError("expected ")
         << name << " elements of type " << list << ", got " << element;
}

static bool isResultFloat(Type type) { return isStorageFloat(type) || type.isF64(); }
static bool isF32(Type type) { return type.isF32(); }

static LogicalResult checkColumns(Operation *op, StringRef name, StringRef dim, Type type) {
  int64_t columns = cast<ShapedType>(type).getShape().back();
  if (columns >= 1)
    return success();
  return op->emitOpError("expected a static ") << dim << " above 0 in the last dimension of "
                                               << name << ", got " << stringifyExtent(columns);
}

LogicalResult attn::checkF32(Operation *op, StringRef name, Type type) {
  return checkElement(op, name, type, isF32, "f32");
}

/// Tiles may be larger than what they are of, as a schedule says.
static constexpr int64_t kMaxExtent = int64_t(1) << 30;

/// extent_c1: static extents are at most 2^30
static LogicalResult verifyExtents(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (auto shaped = dyn_cast<ShapedType>(type); shaped && shaped.hasRank())
      for (int64_t size : shaped.getShape())
        if (!ShapedType::isDynamic(size) && size > kMaxExtent)
          return op->emitOpError("expected extents of at most ")
                 << kMaxExtent << ", got " << size << " in " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

static bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

/// Ops whose meaning a region may use: elementwise arithmetic, and reads of captured tensors or,
/// once the op itself is on buffers and its effects say so, of captured buffers. Contributions say
/// themselves where they may stand.
static bool isAllowedInRegion(Operation *parent, Operation &op) {
  if (isa<memref::LoadOp>(op)) {
    auto destination = dyn_cast<DestinationStyleOpInterface>(parent);
    return destination && destination.hasPureBufferSemantics();
  }
  return isa<YieldOp, ContributeOp, tensor::ExtractOp>(op) ||
         isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op.getDialect());
}

static LogicalResult verifyOwn(Operation &op, Region &region) {
  Attribute attr = op.getAttr(kOwnAttrName);
  if (!attr)
    return success();
  auto dims = dyn_cast<DenseI64ArrayAttr>(attr);
  if (!dims || !isa<tensor::ExtractOp>(op))
    return op.emitOpError("expected ")
           << kOwnAttrName << " of dimensions of a tensor.extract, got " << attr;
  for (int64_t dim : dims.asArrayRef()) {
    if (dim < 0 || dim + 1 >= int64_t(op.getNumOperands()))
      return op.emitOpError("expected dimensions of the tensor in ")
             << kOwnAttrName << ", got " << dim;
    auto index = dyn_cast<BlockArgument>(op.getOperand(dim + 1));
    if (!index || index.getOwner() != &region.front())
      return op.emitOpError("expected a position of the region as index ")
             << dim << ", which is the op's own";
  }
  return success();
}

static LogicalResult verifyFunctionRegion(Operation *op, StringRef name, Region &region,
                                          TypeRange arguments, Type result) {
  if (region.empty())
    return success();
  // attention_c11: the region's arguments are those of its function
  if (region.getArgumentTypes() != arguments)
    return op->emitOpError("expected ") << name << " region arguments (" << arguments << "), got ("
                                        << region.getArgumentTypes() << ")";
  for (Operation &inner : region.front()) {
    // attention_c12: the ops are arith and math ops and reads of captured tensors
    if (!isAllowedInRegion(op, inner)) {
      InFlightDiagnostic diag =
          op->emitOpError("expected only arith and math ops and tensor.extract in the ")
          << name << " region, got '" << inner.getName() << "'";
      diag.attachNote(inner.getLoc()) << "the op";
      return diag;
    }
    // attention_c24: dimensions that are read at the op's own have positions of the region as
    // indices
    if (failed(verifyOwn(inner, region)))
      return failure();
    // attention_c13: what a region computes are scalars
    for (Type type : inner.getResultTypes())
      if (!isScalar(type))
        return inner.emitOpError("expected scalars inside a ") << name << " region, got " << type;
  }
  // attention_c14: the region yields its function's type
  auto yield = cast<YieldOp>(region.front().getTerminator());
  if (yield.getResult().getType() != result)
    return yield.emitOpError("expected the ")
           << name << " region to yield " << result << ", got " << yield.getResult().getType();
  // attention_c21: a second value is a score region's, of f32
  if (Value factor = yield.getFactor()) {
    if (name != "score")
      return yield.emitOpError("expected a ")
             << name << " region to yield one value, got a factor beside it (score regions have "
             << "one)";
    if (!factor.getType().isF32())
      return yield.emitOpError("expected a factor of type 'f32', got ") << factor.getType();
  }
  return success();
}

LogicalResult attn::verifyMask(Operation *op, Region &mask) {
  Type index = IndexType::get(op->getContext()), i1 = IntegerType::get(op->getContext(), 1);
  return verifyFunctionRegion(op, "mask", mask, {index, index, index, index}, i1);
}

LogicalResult attn::verifyScoreAndMask(Operation *op, Region &score, Region &mask) {
  Type index = IndexType::get(op->getContext()), f32 = Float32Type::get(op->getContext());
  if (failed(verifyFunctionRegion(op, "score", score, {f32, index, index, index, index}, f32)))
    return failure();
  return verifyMask(op, mask);
}

LogicalResult attn::verifyGradRegion(Operation *op, Region &grad) {
  Type index = IndexType::get(op->getContext()), f32 = Float32Type::get(op->getContext());
  return verifyFunctionRegion(op, "grad", grad, {f32, f32, index, index, index, index}, f32);
}

LogicalResult attn::verifyOrigin(Operation *op, OperandRange origin) {
  // attention_c10: a position has four coordinates
  if (!origin.empty() && origin.size() != 4)
    return op->emitOpError("expected 'at' to hold 4 positions (b, h, m, n), got ") << origin.size();
  return success();
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

static bool isBottomRight(Attribute variant) {
  auto is = [](auto attr) { return attr.getAlignment() == Alignment::BottomRight; };
  return llvm::TypeSwitch<Attribute, bool>(variant)
      .Case<CausalAttr, WindowAttr, PrefixAttr, ChunkedAttr, AlibiAttr, RelativeBiasAttr>(is)
      .Default(false);
}

/// The run-time extent that a dimension of a capture has to have; any when the letter is the
/// capture's own.
static int64_t getExtent(ScoredOpInterface op, char letter) {
  switch (letter) {
  case 'B':
    return op.getQuery().getType().getDimSize(0);
  case 'H':
    return op.getQuery().getType().getDimSize(1);
  case 'M':
    return op.getQuery().getType().getDimSize(2);
  case 'N':
    return op.getKey().getType().getDimSize(2);
  case '1':
    return 1;
  case '2':
    return 2;
  default:
    return ShapedType::kDynamic;
  }
}

/// Whether a dimension of a capture has the op's extent of this letter. Where positions are those
/// of a whole, only the captures that say so do.
static bool hasOwnExtent(ScoredOpInterface op, char letter, bool saysPositions) {
  size_t position = StringRef("BHMN").find(letter);
  return position == StringRef::npos || saysPositions || readsOwn(op, position);
}

static LogicalResult verifyVariants(ScoredOpInterface op) {
  // attention_c15: variants are attributes of this dialect
  for (Attribute variant :
       op.getVariantsAttr() ? op.getVariantsAttr().getValue() : ArrayRef<Attribute>())
    if (!getCaptureRules(variant))
      return op->emitOpError("expected a variant (causal, window, prefix, chunked, document, "
                             "key_length, softcap, alibi, "
                             "relative_bias, dropout, positions), got ")
             << variant;
  // attention_c16: the captures are those that the variants read, in order, of their rank and kind
  // of element
  SmallVector<CaptureRule> rules = getCaptureRules(op);
  if (rules.size() != op.getCaptures().size())
    return op->emitOpError("expected ")
           << rules.size() << " captures for these variants, got " << op.getCaptures().size();
  PositionsAttr positions = findPositions(op);
  size_t numPlaces = positions ? getCaptureRules(positions)->size() : 0;
  for (auto [number, rule, capture] : llvm::enumerate(rules, op.getCaptures())) {
    auto type = cast<RankedTensorType>(capture.getType());
    Type element = type.getElementType();
    bool elementsFit = rule.isFloat ? isStorageFloat(element) : element.isSignlessIntOrIndex();
    if (type.getRank() != int64_t(rule.dims.size()) || !elementsFit)
      return op->emitOpError("expected ")
             << rule.name << " of rank " << rule.dims.size() << " and "
             << (rule.isFloat ? "float" : "signless integer or index") << " elements, got " << type;
    // attention_c17: the captures have the op's extents
    for (auto [i, letter] : llvm::enumerate(rule.dims))
      if (hasOwnExtent(op, letter, number < numPlaces) &&
          failed(checkExtent(op, rule.dims.substr(i, 1), "the op", getExtent(op, letter), rule.name,
                             type.getDimSize(i))))
        return failure();
    // attention_c18: a bias table has a column to clamp to
    if (rule.dims == "HR" && type.getDimSize(1) == 0)
      return op->emitOpError("expected R above 0 in ") << rule.name << ", got " << type;
  }
  // attention_c19: variants are about the whole problem, whose M and N an op elsewhere than at
  // zeros does not know
  if (!op.getOrigin().empty() && op.getVariantsAttr() &&
      llvm::any_of(op.getVariantsAttr(), isBottomRight))
    return op->emitOpError("expected variants aligned top_left beside 'at', got ")
           << op.getVariantsAttr();
  // attention_c23: positions are the first variant and the only ones, without 'at'
  if (op.getVariantsAttr())
    for (auto [i, variant] : llvm::enumerate(op.getVariantsAttr()))
      if (isa<PositionsAttr>(variant) && (i > 0 || !op.getOrigin().empty()))
        return op->emitOpError("expected ")
               << variant << (i > 0 ? " as the first variant, got " : " without 'at', got ")
               << op.getVariantsAttr();
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// query, key and value alone, and with each other.
static LogicalResult verifyProducts(ScoredOpInterface op) {
  RankedTensorType q = op.getQuery().getType(), k = op.getKey().getType(),
                   v = op.getValue().getType();
  if (failed(verifyExtents(op)))
    return failure();
  // attention_c1: query, key, value and output have rank 4
  if (failed(checkRank(op, "query", q, 4, "(B, H, M, D)")) ||
      failed(checkRank(op, "key", k, 4, "(B, Hkv, N, D)")) ||
      failed(checkRank(op, "value", v, 4, "(B, Hkv, N, Dv)")))
    return failure();
  // attention_c2: elements are f8E4M3FN, f8E5M2, f16, bf16 or f32; query, key and value agree; the
  // output is of that type or wider, and of 16 bits or more
  for (auto [name, type] : {std::pair<StringRef, Type>{"query", q}, {"key", k}, {"value", v}})
    if (failed(checkElement(op, name, type, isOperandFloat, kOperandFloats)))
      return failure();
  Type element = q.getElementType();
  if (k.getElementType() != element || v.getElementType() != element)
    return op->emitOpError("expected query, key and value of one element type, got ")
           << element << ", " << k.getElementType() << " and " << v.getElementType();
  // attention_c3: D and Dv are compile-time constants above zero
  for (auto [name, dim, type] :
       {std::tuple<StringRef, StringRef, RankedTensorType>{"query", "D", q},
        {"key", "D", k},
        {"value", "Dv", v}})
    if (failed(checkColumns(op, name, dim, type)))
      return failure();
  // attention_c4: D of query equals D of key
  if (failed(checkExtent(op, "D", "query", q.getDimSize(3), "key", k.getDimSize(3))))
    return failure();
  // attention_c5: B, Hkv, N of key and value agree; B of query and key agree
  if (failed(checkExtent(op, "B", "query", q.getDimSize(0), "key", k.getDimSize(0))) ||
      failed(checkExtent(op, "B", "key", k.getDimSize(0), "value", v.getDimSize(0))) ||
      failed(checkExtent(op, "Hkv", "key", k.getDimSize(1), "value", v.getDimSize(1))) ||
      failed(checkExtent(op, "N", "key", k.getDimSize(2), "value", v.getDimSize(2))))
    return failure();
  // attention_c6: H is a multiple of Hkv, which is above 0
  if (int64_t h = q.getDimSize(1), hkv = k.getDimSize(1); !ShapedType::isDynamic(hkv)) {
    if (hkv == 0 && h != 0)
      return op->emitOpError("expected Hkv above 0, got 0");
    if (!ShapedType::isDynamic(h) && hkv != 0 && h % hkv != 0)
      return op->emitOpError("expected H to be a multiple of Hkv, got ") << h << " and " << hkv;
  }
  return success();
}

LogicalResult attn::verifyLikeOutput(ScoredOpInterface op, StringRef name, Type result) {
  auto o = cast<RankedTensorType>(result);
  RankedTensorType q = op.getQuery().getType(), v = op.getValue().getType();
  Type element = q.getElementType();
  if (failed(checkRank(op, name, o, 4, "(B, H, M, Dv)")))
    return failure();
  bool fits =
      isNarrowFloat(element) ? isResultFloat(o.getElementType()) : o.getElementType() == element;
  if (!fits && !isF32OrF64(o.getElementType())) {
    InFlightDiagnostic diag = op->emitOpError("expected ") << name << " elements of type ";
    if (isNarrowFloat(element))
      return diag << "f16, bf16, f32 or f64, got " << o.getElementType();
    return diag << element << ", f32 or f64, got " << o.getElementType();
  }
  if (failed(checkColumns(op, name, "Dv", o)))
    return failure();
  // attention_c7: the output is (B, H, M, Dv)
  return success(succeeded(checkExtent(op, "B", "query", q.getDimSize(0), name, o.getDimSize(0))) &&
                 succeeded(checkExtent(op, "H", "query", q.getDimSize(1), name, o.getDimSize(1))) &&
                 succeeded(checkExtent(op, "M", "query", q.getDimSize(2), name, o.getDimSize(2))) &&
                 succeeded(checkExtent(op, "Dv", "value", v.getDimSize(3), name, o.getDimSize(3))));
}

LogicalResult attn::verifyLikeLse(ScoredOpInterface op, StringRef name, Type rows) {
  // attention_c8: lse is (B, H, M) of f32 or f64
  auto type = cast<RankedTensorType>(rows);
  if (failed(checkRank(op, name, type, 3, "(B, H, M)")) ||
      failed(checkElement(op, name, type, isF32OrF64, "f32 or f64")))
    return failure();
  constexpr StringLiteral dims[] = {"B", "H", "M"};
  for (auto [i, dim] : llvm::enumerate(dims))
    if (failed(checkExtent(op, dim, "query", op.getQuery().getType().getDimSize(i), name,
                           type.getDimSize(i))))
      return failure();
  return success();
}

LogicalResult attn::verifySameExtents(Operation *op, ArrayRef<Lettered> all) {
  // attention_c20: an extent that several operands and results state is the same
  llvm::SmallDenseMap<char, std::pair<StringRef, int64_t>> known;
  for (const Lettered &one : all) {
    if (!one.value)
      continue;
    for (auto [letter, size] :
         llvm::zip_equal(one.letters, cast<ShapedType>(one.value.getType()).getShape())) {
      if (ShapedType::isDynamic(size))
        continue;
      auto [first, isNew] = known.try_emplace(letter, one.name, size);
      StringRef dim = letter == 'G' ? "Hkv" : letter == 'V' ? "Dv" : StringRef(&letter, 1);
      if (!isNew &&
          failed(checkExtent(op, dim, first->second.first, first->second.second, one.name, size)))
        return failure();
    }
  }
  return success();
}

LogicalResult attn::verifyScoredOp(ScoredOpInterface op) {
  if (failed(verifyProducts(op)))
    return failure();
  // attention_c9: sink is (H) or, of the forward pass, (H, M) of f32
  if (Value sink = op.getSink()) {
    auto type = cast<RankedTensorType>(sink.getType());
    ArrayRef<int64_t> query = op.getQuery().getType().getShape();
    bool isOfRows = isa<AttentionOp>(op) && type.getRank() == 2;
    if ((!isOfRows && failed(checkRank(op, "sink", type, 1, "(H)"))) ||
        failed(checkF32(op, "sink", type)) ||
        failed(checkExtent(op, "H", "query", query[1], "sink", type.getDimSize(0))) ||
        (isOfRows && failed(checkExtent(op, "M", "query", query[2], "sink", type.getDimSize(1)))))
      return failure();
  }
  if (failed(verifyOrigin(op, op.getOrigin())))
    return failure();
  return verifyVariants(op);
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyScoredOp(*this)) ||
      failed(verifyLikeOutput(*this, "output", getOutput().getType())))
    return failure();
  // attention_c22: lse_low comes with lse
  if (getLseLow() && !getLse())
    return emitOpError("expected lse beside lse_low, got none");
  for (auto [name, rows] : {std::pair<StringRef, Value>{"lse", getLse()}, {"lse_low", getLseLow()}})
    if (rows && failed(verifyLikeLse(*this, name, rows.getType())))
      return failure();
  bool isOfRows = getSink() && getSink().getType().getRank() == 2;
  return verifySameExtents(*this, {{"query", getQuery(), "BHMD"},
                                   {"key", getKey(), "BGND"},
                                   {"value", getValue(), "BGNV"},
                                   {"output", getOutput(), "BHMV"},
                                   {"lse", getLse(), "BHM"},
                                   {"lse_low", getLseLow(), "BHM"},
                                   {"sink", getSink(), isOfRows ? "HM" : "H"}});
}

LogicalResult AttentionOp::verifyRegions() {
  return verifyScoreAndMask(*this, getScore(), getMask());
}

LogicalResult AssumeOp::verify() {
  if (failed(verifyExtents(*this)))
    return failure();
  // assume_c1: facts are about integers
  auto type = cast<RankedTensorType>(getSource().getType());
  if (type.getRank() < 1 || !type.getElementType().isSignlessIntOrIndex())
    return emitOpError("expected a tensor of signless integers or indices with at least one "
                       "dimension, got ")
           << type;
  return success();
}

LogicalResult attn::verifyDestinations(DestinationStyleOpInterface op) {
  if (failed(verifyExtents(op)))
    return failure();
  // destination_c1: the operands are all tensors or all buffers
  auto count = [&](auto is) { return llvm::count_if(op->getOperandTypes(), is); };
  int64_t tensors = count(llvm::IsaPred<RankedTensorType>),
          buffers = count(llvm::IsaPred<MemRefType>);
  if (tensors != 0 && buffers != 0)
    return op->emitOpError("expected all operands to be tensors or all to be buffers, got ")
           << tensors << " and " << buffers;
  SmallVector<Type> expected;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (isa<RankedTensorType>(init.get().getType()))
      expected.push_back(init.get().getType());
  // destination_c2: one result per tensor destination
  if (expected != SmallVector<Type>(op->getResultTypes()))
    return op->emitOpError("expected results of the destinations' types (")
           << expected << "), got (" << op->getResultTypes() << ")";
  return success();
}

static LogicalResult verifyState(Operation *op, Type acc, Type rowMax, Type rowSum) {
  // state_c1: the running state is acc (M, Dv), row_max (M), row_sum (M), all f32
  for (auto [name, type, rank, dims] :
       {std::tuple<StringRef, Type, int64_t, StringRef>{"acc", acc, 2, "(M, Dv)"},
        {"row_max", rowMax, 1, "(M)"},
        {"row_sum", rowSum, 1, "(M)"}})
    if (failed(checkRank(op, name, type, rank, dims)) || failed(checkF32(op, name, type)))
      return failure();
  // state_c2: Dv is above 0
  if (cast<ShapedType>(acc).getDimSize(1) == 0)
    return op->emitOpError("expected Dv above 0 in acc, got ") << acc;
  int64_t m = cast<ShapedType>(acc).getDimSize(0);
  if (failed(checkExtent(op, "M", "acc", m, "row_max", cast<ShapedType>(rowMax).getDimSize(0))) ||
      failed(checkExtent(op, "M", "acc", m, "row_sum", cast<ShapedType>(rowSum).getDimSize(0))))
    return failure();
  return success();
}

LogicalResult OnlineAttentionOp::verify() {
  ShapedType q = getQuery().getType(), k = getKey().getType(), v = getValue().getType(),
             acc = getAcc().getType();
  // online_attention_c1: query (M, D), key (N, D), value (N, Dv), each of f8E4M3FN, f8E5M2, f16,
  // bf16 or f32
  if (failed(checkRank(*this, "query", q, 2, "(M, D)")) ||
      failed(checkRank(*this, "key", k, 2, "(N, D)")) ||
      failed(checkRank(*this, "value", v, 2, "(N, Dv)")))
    return failure();
  for (auto [name, type] : {std::pair<StringRef, Type>{"query", q}, {"key", k}, {"value", v}})
    if (failed(checkElement(*this, name, type, isOperandFloat, kOperandFloats)))
      return failure();
  if (failed(verifyState(*this, acc, getRowMax().getType(), getRowSum().getType())))
    return failure();
  // online_attention_c3: D is above 0
  if (q.getDimSize(1) == 0 || k.getDimSize(1) == 0)
    return emitOpError("expected D above 0, got ") << q << " and " << k;
  // online_attention_c2: the shapes agree
  if (failed(checkExtent(*this, "D", "query", q.getDimSize(1), "key", k.getDimSize(1))) ||
      failed(checkExtent(*this, "N", "key", k.getDimSize(0), "value", v.getDimSize(0))) ||
      failed(checkExtent(*this, "M", "query", q.getDimSize(0), "acc", acc.getDimSize(0))) ||
      failed(checkExtent(*this, "Dv", "value", v.getDimSize(1), "acc", acc.getDimSize(1))))
    return failure();
  if (failed(verifyOrigin(*this, getOrigin())))
    return failure();
  return verifyDestinations(*this);
}

LogicalResult OnlineAttentionOp::verifyRegions() {
  return verifyScoreAndMask(*this, getScore(), getMask());
}

LogicalResult TileStatusOp::verify() {
  // tile_status_c1: the status is one number
  if (getStatus().getType().getDimSize(0) != 1)
    return emitOpError("expected a status of one number, got ") << getStatus().getType();
  if (failed(verifyOrigin(*this, getOrigin())))
    return failure();
  return verifyDestinations(*this);
}

LogicalResult TileStatusOp::verifyRegions() {
  // tile_status_c2: there is a mask
  if (getMask().empty())
    return emitOpError("expected a mask, without which everything is kept");
  return verifyMask(*this, getMask());
}

LogicalResult ListTilesOp::verify() {
  // list_tiles_c1: counts are two
  if (getCounts().getType().getDimSize(0) != 2)
    return emitOpError("expected two counts, got ") << getCounts().getType();
  // list_tiles_c2: there is a place for each tile
  if (failed(checkExtent(*this, "the number of tiles", "status",
                         getStatus().getType().getDimSize(0), "tiles",
                         getTiles().getType().getDimSize(0))))
    return failure();
  return verifyDestinations(*this);
}

LogicalResult NormalizeOp::verify() {
  ShapedType acc = getAcc().getType(), o = getOutput().getType();
  if (failed(verifyState(*this, acc, getRowMax().getType(), getRowSum().getType())))
    return failure();
  // normalize_c1: the output has the shape of acc, in f16, bf16, f32 or f64
  if (failed(checkRank(*this, "output", o, 2, "(M, Dv)")) ||
      failed(checkElement(*this, "output", o, isResultFloat, "f16, bf16, f32 or f64")) ||
      failed(checkExtent(*this, "M", "acc", acc.getDimSize(0), "output", o.getDimSize(0))) ||
      failed(checkExtent(*this, "Dv", "acc", acc.getDimSize(1), "output", o.getDimSize(1))))
    return failure();
  // normalize_c2: lse and lse_low are (M) of f32, and lse_low comes with lse
  if (getLseLow() && !getLse())
    return emitOpError("expected lse beside lse_low, got none");
  for (auto [name, rows] :
       {std::pair<StringRef, Value>{"lse", getLse()}, {"lse_low", getLseLow()}}) {
    if (!rows)
      continue;
    auto type = cast<ShapedType>(rows.getType());
    if (failed(checkRank(*this, name, type, 1, "(M)")) || failed(checkF32(*this, name, type)) ||
        failed(checkExtent(*this, "M", "acc", acc.getDimSize(0), name, type.getDimSize(0))))
      return failure();
  }
  // normalize_c3: sink is f32, or (M) of f32
  if (auto type = getSink() ? dyn_cast<ShapedType>(getSink().getType()) : ShapedType())
    if (failed(checkRank(*this, "sink", type, 1, "(M)")) || failed(checkF32(*this, "sink", type)) ||
        failed(checkExtent(*this, "M", "acc", acc.getDimSize(0), "sink", type.getDimSize(0))))
      return failure();
  return verifyDestinations(*this);
}

LogicalResult MergeOp::verify() {
  ShapedType partial = getPartial().getType(), partialLse = getPartialLse().getType(),
             o = getOutput().getType();
  // merge_c1: partial (S, ..., Dv), partial_lse and partial_low (S, ...), output (..., Dv), lse and
  // lse_low (...)
  if (partial.getRank() < 2)
    return emitOpError("expected partial of rank 2 or more (S, ..., Dv), got ") << partial;
  int64_t rank = partial.getRank();
  SmallVector<std::pair<StringRef, ShapedType>, 2> ofParts = {{"partial_lse", partialLse}}, ofRows;
  if (getPartialLow())
    ofParts.emplace_back("partial_low", getPartialLow().getType());
  if (getLse())
    ofRows.emplace_back("lse", getLse().getType());
  if (getLseLow())
    ofRows.emplace_back("lse_low", getLseLow().getType());
  for (auto [name, type] : ofParts)
    if (failed(checkRank(*this, name, type, rank - 1, "(S, ...)")))
      return failure();
  if (failed(checkRank(*this, "output", o, rank - 1, "(..., Dv)")))
    return failure();
  for (auto [name, type] : ofRows)
    if (failed(checkRank(*this, name, type, rank - 2, "(...)")))
      return failure();
  // merge_c2: partials and output are f16, bf16 or f32, logarithms f32
  if (failed(checkElement(*this, "partial", partial, isStorageFloat, "f16, bf16 or f32")) ||
      failed(checkElement(*this, "output", o, isStorageFloat, "f16, bf16 or f32")))
    return failure();
  for (auto [name, type] : llvm::concat<std::pair<StringRef, ShapedType>>(ofParts, ofRows))
    if (failed(checkF32(*this, name, type)))
      return failure();
  // merge_c5: lse_low comes with lse and partial_low
  if (getLseLow() && !(getLse() && getPartialLow()))
    return emitOpError("expected lse and partial_low beside lse_low, got one of them at most");
  // merge_c4: Dv is above 0
  if (partial.getShape().back() == 0 || o.getShape().back() == 0)
    return emitOpError("expected Dv above 0, got ") << partial << " and " << o;
  // merge_c3: the shapes agree
  for (int64_t i = 0; i < rank - 1; ++i) {
    std::string dim = "dimension " + std::to_string(i);
    for (auto [name, type] : ofParts)
      if (failed(
              checkExtent(*this, dim, "partial", partial.getDimSize(i), name, type.getDimSize(i))))
        return failure();
    if (failed(checkExtent(*this, dim, "partial past S", partial.getDimSize(i + 1), "output",
                           o.getDimSize(i))))
      return failure();
  }
  for (auto [result, type] : ofRows)
    for (int64_t i = 0; i < rank - 2; ++i)
      for (auto [name, size] : {std::pair<StringRef, int64_t>{"output", o.getDimSize(i)},
                                {"partial past S", partial.getDimSize(i + 1)},
                                {"partial_lse past S", partialLse.getDimSize(i + 1)}})
        if (failed(checkExtent(*this, "dimension " + std::to_string(i), name, size, result,
                               type.getDimSize(i))))
          return failure();
  return verifyDestinations(*this);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

LogicalResult CountPartsOp::verify() {
  // count_parts_c1: there are up to 1 to 1024 parts
  if (getMost() < 1 || getMost() > 1024)
    return emitOpError("expected at most 1 to 1024 parts, got ") << getMost();
  // count_parts_c2: slots are for the sequences that the first of the blocks counts
  if (getSlots() && getBlocks().empty())
    return emitOpError("expected the number of sequences as the first of the blocks, got none");
  return success();
}
