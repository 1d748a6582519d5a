//===- KernelPlan.cpp - the plan of a kernel as JSON ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/JSON.h"
#include "llvm/ADT/STLExtras.h"

namespace json = llvm::json;

namespace attn {

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static llvm::StringRef stringifyKind(KernelParameter::Kind kind) {
  switch (kind) {
  case KernelParameter::Kind::TensorMap:
    return "tensor_map";
  case KernelParameter::Kind::Pointer:
    return "pointer";
  case KernelParameter::Kind::Size:
    return "size";
  case KernelParameter::Kind::Stride:
    return "stride";
  case KernelParameter::Kind::Scalar:
    return "scalar";
  }
  return "";
}

static json::Value toValue(const KernelParameter &parameter) {
  json::Object object{{"kind", stringifyKind(parameter.kind)}, {"argument", parameter.argument}};
  if (parameter.kind == KernelParameter::Kind::Size ||
      parameter.kind == KernelParameter::Kind::Stride)
    object["dim"] = parameter.dim;
  if (!parameter.type.empty())
    object["type"] = parameter.type;
  if (parameter.kind == KernelParameter::Kind::TensorMap) {
    object["element_type"] = parameter.map.elementType;
    object["dims"] = json::Array(parameter.map.dims);
    object["box"] = json::Array(parameter.map.box);
    object["swizzle"] = parameter.map.swizzle;
  }
  return object;
}

static json::Array toArray(llvm::ArrayRef<SizeFactor> factors);

static json::Value toValue(const SizeFactor &factor) {
  if (factor.isCounted())
    return json::Object{{factor.argument == SizeFactor::kParts ? "parts" : "slots", factor.dim},
                        {"of", toArray(factor.of)}};
  if (factor.argument == SizeFactor::kMultiprocessors) {
    json::Object object{{"multiprocessors", factor.dim}};
    if (factor.less != 0)
      object["less"] = factor.less;
    return object;
  }
  if (factor.argument == SizeFactor::kMemoryRate)
    return json::Object{{"memory_rate", true}};
  if (factor.argument < 0)
    return json::Object{{"constant", factor.dim}};
  json::Object object{
      {"argument", factor.argument}, {"dim", factor.dim}, {"divisor", factor.divisor}};
  if (factor.multiplier != 1)
    object["multiplier"] = factor.multiplier;
  if (factor.unit != 1)
    object["unit"] = factor.unit;
  if (factor.less != 0)
    object["less"] = factor.less;
  return object;
}

static json::Array toArray(llvm::ArrayRef<SizeFactor> factors) {
  json::Array array;
  for (const SizeFactor &factor : factors)
    array.push_back(toValue(factor));
  return array;
}

static json::Value toValue(const ScratchTensor &scratch) {
  json::Object object{{"argument", scratch.argument},
                      {"element_type", scratch.elementType},
                      {"shape", toArray(scratch.shape)}};
  if (scratch.isZero)
    object["zero"] = true;
  return object;
}

/// The fields of the size, and of the range.
static json::Value toValue(const ExtentRange &range) {
  json::Object object = std::move(*toValue(range.size).getAsObject());
  object["least"] = range.least;
  object["most"] = range.most;
  if (!(range.per == SizeFactor()))
    object["per"] = toValue(range.per);
  return object;
}

json::Array toArray(const WayConditions &when) {
  json::Array conditions;
  for (const std::vector<ExtentRange> &ranges : when) {
    json::Array all;
    for (const ExtentRange &range : ranges)
      all.push_back(toValue(range));
    conditions.push_back(std::move(all));
  }
  return conditions;
}

/// The same, of `least` parts and more.
static int64_t countParts(int64_t blocks, int64_t places, int64_t most, int64_t least) {
  // Of many rounds whatever is left of the last is small.
  constexpr int64_t kManyRounds = 64;
  if (blocks <= 0 || blocks / kManyRounds >= places)
    return 1;
  int64_t best = least, bestIdle = INT64_MAX;
  for (int64_t parts = least; parts <= most; ++parts) {
    int64_t count = blocks * parts, rounds = (count + places - 1) / places;
    // Idle places in 4096ths of all.
    int64_t idle = (rounds * places - count) * 4096 / (rounds * places);
    if (idle < bestIdle) {
      best = parts;
      bestIdle = idle;
    }
    if (idle <= 4096 / 16)
      break;
  }
  return best;
}

int64_t countParts(int64_t blocks, int64_t places, int64_t most) {
  return countParts(blocks, places, most, /*least=*/1);
}

int64_t countSlots(int64_t sequences, int64_t blocks, int64_t places, int64_t most) {
  // Parts start by length, the longest first, so that the device is idle for about half a short
  // part at the end. A multiprocessor has two blocks of a decoding kernel at a time.
  constexpr int64_t kRounds = 3;
  if (sequences <= 0 || blocks <= 0)
    return 0;
  int64_t least = std::clamp<int64_t>(llvm::divideCeil(kRounds * places, blocks), 1,
                                      std::max<int64_t>(most, 1));
  return sequences * (countParts(blocks, places, std::min(most, 2 * least), least) + 1);
}

bool KernelPlan::isPlanning() const {
  return !scratch.empty() && llvm::all_of(scratch, [](const ScratchTensor &tensor) {
    return tensor.elementType.front() == 'i' && !tensor.isZero;
  });
}

json::Value toValue(const KernelPlan &plan) {
  json::Array parameters, grid, scratch;
  for (const KernelParameter &parameter : plan.parameters)
    parameters.push_back(toValue(parameter));
  for (const std::vector<SizeFactor> &factors : plan.grid)
    grid.push_back(toArray(factors));
  for (const ScratchTensor &tensor : plan.scratch)
    scratch.push_back(toValue(tensor));
  json::Object object{{"name", plan.name},
                      {"target", plan.target},
                      {"parameters", std::move(parameters)},
                      {"grid", std::move(grid)},
                      {"block", json::Array(plan.block)},
                      {"cluster", json::Array(plan.cluster)},
                      {"dynamic_shared_bytes", plan.dynamicSharedBytes},
                      {"scratch", std::move(scratch)}};
  // What few kernels have is left out of the others'.
  if (plan.isProgrammatic)
    object["programmatic"] = true;
  if (!plan.way.empty())
    object["way"] = plan.way;
  if (!plan.when.empty())
    object["when"] = toArray(plan.when);
  return object;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool fromValue(const json::Value &value, KernelParameter::Kind &kind, json::Path path) {
  using Kind = KernelParameter::Kind;
  for (Kind candidate : {Kind::TensorMap, Kind::Pointer, Kind::Size, Kind::Stride, Kind::Scalar})
    if (value.getAsString() == stringifyKind(candidate)) {
      kind = candidate;
      return true;
    }
  path.report("expected tensor_map, pointer, size, stride or scalar");
  return false;
}

static bool fromValue(const json::Value &value, KernelParameter &parameter, json::Path path) {
  json::ObjectMapper mapper(value, path);
  std::string kind;
  if (!mapper || !mapper.map("kind", kind) ||
      !fromValue(json::Value(kind), parameter.kind, path.field("kind")) ||
      !mapper.map("argument", parameter.argument))
    return false;
  switch (parameter.kind) {
  case KernelParameter::Kind::Pointer:
    return true;
  case KernelParameter::Kind::Scalar:
    return mapper.map("type", parameter.type);
  case KernelParameter::Kind::Size:
  case KernelParameter::Kind::Stride:
    return mapper.map("dim", parameter.dim) && mapper.map("type", parameter.type);
  case KernelParameter::Kind::TensorMap:
    break;
  }
  TensorMap &map = parameter.map;
  if (!mapper.map("element_type", map.elementType) || !mapper.map("dims", map.dims) ||
      !mapper.map("box", map.box) || !mapper.map("swizzle", map.swizzle))
    return false;
  if (map.dims.empty() || map.dims.size() > 5 || map.dims.size() != map.box.size()) {
    path.field("box").report("expected one to five dims and as many box sizes");
    return false;
  }
  return true;
}

static bool fromJSON(const json::Value &value, SizeFactor &factor, json::Path path);

static bool fromValue(const json::Value &value, SizeFactor &factor, json::Path path) {
  json::ObjectMapper mapper(value, path);
  if (!mapper)
    return false;
  bool hasSlots = value.getAsObject()->get("slots");
  if (hasSlots || value.getAsObject()->get("parts")) {
    factor.argument = hasSlots ? SizeFactor::kSlots : SizeFactor::kParts;
    if (!mapper.map(hasSlots ? llvm::StringLiteral("slots") : llvm::StringLiteral("parts"),
                    factor.dim) ||
        !mapper.map("of", factor.of))
      return false;
    if (factor.dim > 0 && factor.dim <= 1024 && factor.of.size() >= (hasSlots ? 2 : 1) &&
        llvm::all_of(factor.of, [](const SizeFactor &inner) {
          return inner.argument >= SizeFactor::kConstant;
        }))
      return true;
    path.report("expected 1 to 1024 parts, of sizes and constants");
    return false;
  }
  if (value.getAsObject()->get("constant"))
    return mapper.map("constant", factor.dim);
  if (value.getAsObject()->get("multiprocessors")) {
    factor.argument = SizeFactor::kMultiprocessors;
    return mapper.map("multiprocessors", factor.dim) && mapper.mapOptional("less", factor.less);
  }
  if (value.getAsObject()->get("memory_rate")) {
    factor.argument = SizeFactor::kMemoryRate;
    return true;
  }
  if (!mapper.map("argument", factor.argument) || !mapper.map("dim", factor.dim) ||
      !mapper.map("divisor", factor.divisor) ||
      !mapper.mapOptional("multiplier", factor.multiplier) ||
      !mapper.mapOptional("unit", factor.unit) || !mapper.mapOptional("less", factor.less))
    return false;
  if (factor.argument >= 0 && factor.divisor > 0 && factor.multiplier > 0 && factor.unit > 0)
    return true;
  path.report("expected an argument of at least 0, a divisor, a multiplier and a unit of at least "
              "1");
  return false;
}

static bool fromValue(const json::Value &value, ScratchTensor &scratch, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("argument", scratch.argument) &&
         mapper.map("element_type", scratch.elementType) && mapper.map("shape", scratch.shape) &&
         mapper.mapOptional("zero", scratch.isZero);
}

static bool fromValue(const json::Value &value, ExtentRange &range, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && fromValue(value, range.size, path) && mapper.map("least", range.least) &&
         mapper.map("most", range.most) && mapper.mapOptional("per", range.per);
}

/// `values` has exactly three elements.
template <typename T>
static bool fromTriple(json::ObjectMapper &mapper, llvm::StringLiteral name,
                       std::array<T, 3> &values, json::Path path) {
  std::vector<T> list;
  if (!mapper.map(name, list))
    return false;
  if (list.size() != 3) {
    path.field(name).report("expected x, y and z");
    return false;
  }
  std::move(list.begin(), list.end(), values.begin());
  return true;
}

// Found by argument-dependent lookup from the JSON library's own templates.
static bool fromJSON(const json::Value &value, KernelParameter &parameter, json::Path path) {
  return fromValue(value, parameter, path);
}
static bool fromJSON(const json::Value &value, SizeFactor &factor, json::Path path) {
  return fromValue(value, factor, path);
}
static bool fromJSON(const json::Value &value, ScratchTensor &scratch, json::Path path) {
  return fromValue(value, scratch, path);
}
static bool fromJSON(const json::Value &value, ExtentRange &range, json::Path path) {
  return fromValue(value, range, path);
}

bool fromValue(const json::Value &value, KernelPlan &plan, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("name", plan.name) && mapper.map("target", plan.target) &&
         mapper.map("parameters", plan.parameters) && fromTriple(mapper, "grid", plan.grid, path) &&
         fromTriple(mapper, "block", plan.block, path) &&
         fromTriple(mapper, "cluster", plan.cluster, path) &&
         mapper.map("dynamic_shared_bytes", plan.dynamicSharedBytes) &&
         mapper.map("scratch", plan.scratch) &&
         mapper.mapOptional("programmatic", plan.isProgrammatic) &&
         mapper.mapOptional("way", plan.way) && mapper.mapOptional("when", plan.when);
}

bool fromValue(const json::Value &value, WayPlan &way, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("way", way.name) && mapper.mapOptional("when", way.when);
}

} // namespace attn
