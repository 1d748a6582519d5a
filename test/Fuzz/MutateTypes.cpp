//===- MutateTypes.cpp - other attributes, constants and types --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Attributes and types have parameters that no interface enumerates, so they are changed as text
// and parsed again.
//
//===----------------------------------------------------------------------------------------===//

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "test/Fuzz/Mutator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace attn::fuzz {

static constexpr StringRef kNumbers[] = {"0",           "1",
                                         "-1",          "2",
                                         "3",           "4",
                                         "7",           "8",
                                         "15",          "16",
                                         "17",          "31",
                                         "32",          "48",
                                         "64",          "65",
                                         "96",          "127",
                                         "128",         "255",
                                         "256",         "512",
                                         "1000",        "1024",
                                         "4096",        "65535",
                                         "65536",       "1000000",
                                         "536870911",   "536870912",
                                         "2147483647",  "2147483648",
                                         "4294967296",  "9223372036854775807",
                                         "-2147483648", "-9223372036854775808"};
static constexpr StringRef kFloats[] = {
    "0.0",        "-0.0",       "1.0",       "-1.0",    "1.0e-45",
    "3.4e38",     "-3.4e38",    "1.0e300",   "0.5e-38", "1.4426950408889634",
    "0x7FC00000", "0x7F800000", "0xFF800000"};
static constexpr StringRef kElements[] = {"i1",    "i8",  "i16",  "i32", "i64",
                                          "index", "f16", "bf16", "f32", "f64"};
static constexpr StringRef kWords[][2] = {
    {"top_left", "bottom_right"}, {"true", "false"},    {"max", "add"}, {"causal", "document"},
    {"acc", "operand_a"},         {"window", "causal"}, {"nsw", "nuw"}, {"slt", "ule"}};

namespace {
/// A place in a text that can be something else.
struct Site {
  size_t begin, end;
  enum { Integer, Float, Word } kind;
};
} // namespace

static SmallVector<Site> findSites(StringRef text) {
  SmallVector<Site> sites;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    if (llvm::isDigit(text[i])) {
      bool isFloat = false;
      for (; i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '.'); ++i) {
        // The 'x' between two extents ends a number.
        if (llvm::isAlpha(text[i]) && !(text[i] == 'e' || text[i] == 'E') &&
            !text.substr(begin).starts_with("0x"))
          break;
        isFloat |= text[i] == '.' || text[i] == 'E';
        if ((text[i] == 'e' || text[i] == 'E') && i + 1 < text.size() &&
            (text[i + 1] == '+' || text[i + 1] == '-'))
          ++i;
      }
      sites.push_back({begin, i, isFloat ? Site::Float : Site::Integer});
    } else if (llvm::isAlpha(text[i]) || text[i] == '_') {
      if (text[i] == 'x' && begin > 0 &&
          (llvm::isDigit(text[begin - 1]) || text[begin - 1] == '?')) {
        ++i;
        continue;
      }
      while (i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '_'))
        ++i;
      sites.push_back({begin, i, Site::Word});
    } else {
      ++i;
    }
  }
  return sites;
}

static std::string changeNumber(StringRef number, bool isExtent, Rng &rng) {
  if (isExtent && rng.oneIn(4))
    return "?";
  int64_t value;
  if (rng.oneIn(3) && !number.getAsInteger(10, value) && value < (int64_t(1) << 40))
    switch (rng.below(4)) {
    case 0:
      return std::to_string(value + 1);
    case 1:
      return std::to_string(value - 1);
    case 2:
      return std::to_string(value * 2);
    default:
      return std::to_string(value / 2);
    }
  return kNumbers[rng.below(std::size(kNumbers))].str();
}

/// Replaces one number or word; empty if nothing was found to replace.
static std::string changeText(StringRef text, Rng &rng) {
  SmallVector<Site> sites = findSites(text);
  for (int tries = 0; tries < 6 && !sites.empty(); ++tries) {
    Site site = rng.pick(sites);
    StringRef old = text.slice(site.begin, site.end);
    std::string fresh;
    if (site.kind == Site::Float) {
      fresh = kFloats[rng.below(std::size(kFloats))].str();
    } else if (site.kind == Site::Integer) {
      bool isExtent = text.substr(site.end).starts_with("x");
      fresh = changeNumber(old, isExtent, rng);
    } else if (llvm::is_contained(kElements, old)) {
      fresh = kElements[rng.below(std::size(kElements))].str();
    } else {
      for (auto &pair : kWords)
        if (old == pair[0] || old == pair[1])
          fresh = pair[old == pair[0]].str();
    }
    if (!fresh.empty() && fresh != old)
      return (text.take_front(site.begin) + fresh + text.substr(site.end)).str();
  }
  return std::string();
}

template <typename T> static std::string getText(T value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  value.print(os);
  return text;
}

/// Reads a text by one of MLIR's parsers; whoever watches knows what it died of.
template <typename Parsed, typename Parser>
static Parsed parseText(Subject &subject, StringRef text, Parser parser) {
  constexpr bool isType = std::is_same_v<Parsed, Type>;
  if (text.empty())
    return Parsed();
  if (subject.watch)
    subject.watch(text, isType);
  Parsed parsed = parser(text, subject.module.getContext());
  if (subject.watch)
    subject.watch("", isType);
  return parsed;
}

static Attribute parseAttributeText(Subject &subject, StringRef text) {
  // MLIR's own parser does not survive an array of indices.
  if (text.contains("array<index"))
    return Attribute();
  return parseText<Attribute>(subject, text, [](StringRef text, MLIRContext *context) {
    return parseAttribute(text, context);
  });
}

static Type parseTypeText(Subject &subject, StringRef text) {
  return parseText<Type>(
      subject, text, [](StringRef text, MLIRContext *context) { return parseType(text, context); });
}

/// An op drops an inherent attribute of another kind than its own, which no text can say.
static bool setAttribute(Operation *op, StringAttr name, Attribute value) {
  Attribute old = op->getAttr(name);
  op->setAttr(name, value);
  if (op->getAttr(name) == value)
    return true;
  if (old)
    op->setAttr(name, old);
  return false;
}

bool changeAttribute(Subject &subject) {
  Operation *op = subject.pickOp();
  ArrayRef<NamedAttribute> attributes = op->getAttrDictionary().getValue();
  if (attributes.empty())
    return false;
  NamedAttribute attribute = subject.rng.pick(attributes);
  StringRef name = attribute.getName();
  // Symbols and the types of functions have changes of their own.
  if (name == "sym_name" || name == "function_type" || name == "operandSegmentSizes")
    return false;
  // Inherent attributes have defaults, which reading a program would put back.
  if (subject.rng.oneIn(10) &&
      (op->getDiscardableAttr(attribute.getName()) || isa<UnitAttr>(attribute.getValue())))
    return op->removeAttr(attribute.getName()) != nullptr;
  Attribute fresh =
      parseAttributeText(subject, changeText(getText(attribute.getValue()), subject.rng));
  if (!fresh || fresh == attribute.getValue())
    return false;
  return setAttribute(op, attribute.getName(), fresh);
}

bool takeAttribute(Subject &subject) {
  NamedAttribute attribute = subject.rng.pick(subject.corpus.attributes);
  Operation *op = subject.pickOp();
  if (isa<arith::ConstantOp>(op) || op->getAttr(attribute.getName()) == attribute.getValue())
    return false;
  return setAttribute(op, attribute.getName(), attribute.getValue());
}

bool changeConstant(Subject &subject) {
  SmallVector<arith::ConstantOp> constants;
  for (Operation *op : subject.ops)
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      constants.push_back(constant);
  if (constants.empty())
    return false;
  arith::ConstantOp constant = subject.rng.pick(constants);
  auto fresh = dyn_cast_or_null<TypedAttr>(parseAttributeText(
      subject, changeText(getText(Attribute(constant.getValue())), subject.rng)));
  if (!fresh || fresh.getType() != constant.getType())
    return false;
  constant.setValueAttr(fresh);
  return true;
}

/// Whether a type has extents and elements of its own: tensors, buffers, vectors, shared tiles.
static bool isLeaf(Type type) {
  return isa<ShapedType>(type) || type.getDialect().getNamespace() == "tile";
}

/// The types of values and functions, and all that constants need to follow.
static void replaceTypes(ModuleOp module, llvm::function_ref<Type(Type)> replace) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](Type type) -> std::optional<std::pair<Type, WalkResult>> {
    if (Type fresh = replace(type))
      return std::make_pair(fresh, WalkResult::skip());
    // With another element inside, a type might be none: that is for the parser to say.
    if (isLeaf(type))
      return std::make_pair(type, WalkResult::skip());
    return std::nullopt;
  });
  replacer.addReplacement(
      [&](TypedAttr attribute) -> std::optional<std::pair<Attribute, WalkResult>> {
        Type type = attribute.getType(), fresh = replace(type);
        if (!fresh || fresh == type)
          return std::nullopt;
        Builder builder(module.getContext());
        // Of i32 and i64 are enumerations too, which an op drops when they are of another type.
        if (isa<IntegerAttr>(attribute))
          return std::make_pair(attribute, WalkResult::skip());
        if (auto floating = dyn_cast<FloatAttr>(attribute)) {
          if (!isa<FloatType>(fresh))
            return std::make_pair(attribute, WalkResult::skip());
          return std::make_pair(Attribute(builder.getFloatAttr(fresh, floating.getValueAsDouble())),
                                WalkResult::skip());
        }
        auto splat = dyn_cast<SplatElementsAttr>(attribute);
        auto shaped = dyn_cast<ShapedType>(fresh);
        if (splat && shaped && shaped.hasStaticShape() &&
            shaped.getElementType() == splat.getElementType())
          return std::make_pair(
              Attribute(DenseElementsAttr::get(shaped, splat.getSplatValue<Attribute>())),
              WalkResult::skip());
        return std::make_pair(attribute, WalkResult::skip());
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  module.walk([](arith::ConstantOp op) {
    auto integer = dyn_cast<IntegerAttr>(op.getValue());
    Type type = op.getType();
    if (!integer || integer.getType() == type || !type.isIntOrIndex())
      return;
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    op.setValueAttr(IntegerAttr::get(type, integer.getValue().sextOrTrunc(width)));
  });
}

/// The types of the module's values, each once, in order.
static SmallVector<Type> getTypes(Subject &subject) {
  SmallVector<Type> types;
  llvm::DenseSet<Type> seen;
  auto add = [&](Type type) {
    if (seen.insert(type).second)
      types.push_back(type);
  };
  for (Operation *op : subject.ops) {
    llvm::for_each(op->getResultTypes(), add);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArgumentTypes(), add);
  }
  return types;
}

/// One text by another wherever it stands alone in a type: "64" before 'x', or an element.
static std::string replaceToken(StringRef text, StringRef from, StringRef to) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    bool isStart = i == 0 || !llvm::isAlnum(text[i - 1]) || text[i - 1] == 'x';
    StringRef rest = text.substr(i);
    if (isStart && rest.starts_with(from) &&
        (rest.size() == from.size() || !llvm::isAlnum(rest[from.size()]) ||
         rest[from.size()] == 'x')) {
      result += to;
      i += from.size();
      continue;
    }
    result += text[i++];
  }
  return result;
}

static bool replaceInTypes(Subject &subject, StringRef from, StringRef to, bool isElement) {
  Type fromScalar, toScalar;
  if (isElement) {
    fromScalar = parseTypeText(subject, from);
    toScalar = parseTypeText(subject, to);
  }
  llvm::DenseMap<Type, Type> known;
  // Of i32 and i64 are enumerations too.
  bool isAlsoScalar = isElement && from != "i32" && from != "i64" && subject.rng.oneIn(2);
  bool changed = false;
  replaceTypes(subject.module, [&](Type type) -> Type {
    if (isAlsoScalar && type == fromScalar)
      return toScalar;
    if (!isLeaf(type))
      return Type();
    auto [it, isNew] = known.try_emplace(type, type);
    if (isNew)
      if (Type fresh = parseTypeText(subject, replaceToken(getText(type), from, to)))
        changed |= fresh != type, it->second = fresh;
    return it->second;
  });
  return changed;
}

/// The same extent becomes the same other extent in all types.
bool changeExtent(Subject &subject) {
  SmallVector<std::string> extents;
  for (Type type : getTypes(subject)) {
    if (!isLeaf(type))
      continue;
    std::string text = getText(type);
    for (Site site : findSites(text))
      if (site.kind == Site::Integer && StringRef(text).substr(site.end).starts_with("x"))
        extents.push_back(text.substr(site.begin, site.end - site.begin));
    if (StringRef(text).contains("?x"))
      extents.push_back("?");
  }
  if (extents.empty())
    return false;
  std::string from = subject.rng.pick(extents);
  return replaceInTypes(subject, from, changeNumber(from, /*isExtent=*/true, subject.rng),
                        /*isElement=*/false);
}

bool changeElement(Subject &subject) {
  SmallVector<Type> elements;
  for (Type type : getTypes(subject))
    if (auto shaped = dyn_cast<ShapedType>(type);
        shaped && shaped.getElementType().isIntOrIndexOrFloat())
      elements.push_back(shaped.getElementType());
  if (elements.empty())
    return false;
  StringRef to = kElements[subject.rng.below(std::size(kElements))];
  return replaceInTypes(subject, getText(subject.rng.pick(elements)), to, /*isElement=*/true);
}

/// One type becomes another everywhere.
bool changeType(Subject &subject) {
  SmallVector<Type> types = getTypes(subject);
  if (types.empty())
    return false;
  Type from = subject.rng.pick(types);
  Type to = parseTypeText(subject, changeText(getText(from), subject.rng));
  if (!to || to == from)
    return false;
  replaceTypes(subject.module, [&](Type type) { return type == from ? to : Type(); });
  return true;
}

} // namespace attn::fuzz
