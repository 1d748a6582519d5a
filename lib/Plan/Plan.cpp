//===- Plan.cpp - the plan of a function as JSON ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Plan/Plan.h"
#include "lib/Plan/JSON.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;
namespace json = llvm::json;

std::string attn::writePlan(const FunctionPlan &plan) {
  json::Array kernels;
  for (const KernelPlan &kernel : plan.kernels)
    kernels.push_back(toValue(kernel));
  json::Object root{{"version", kPlanVersion}, {"kernels", std::move(kernels)}};
  json::Array ways;
  for (const WayPlan &way : plan.ways)
    ways.push_back(json::Object{{"way", way.name}, {"when", toArray(way.when)}});
  if (!ways.empty())
    root["ways"] = std::move(ways);
  if (plan.rules)
    root["function"] = toValue(*plan.rules);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}\n", json::Value(std::move(root)));
  return text;
}

/// The parser calls itself for each bracket.
static llvm::Error checkNesting(llvm::StringRef text) {
  constexpr unsigned kMaxDepth = 64;
  unsigned depth = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isString && c == '\\')
      ++i;
    else if (c == '"')
      isString = !isString;
    else if (!isString && (c == '[' || c == '{') && ++depth > kMaxDepth)
      return llvm::createStringError("expected a kernel plan that nests to a depth of %u, got more",
                                     kMaxDepth);
    else if (!isString && (c == ']' || c == '}') && depth)
      --depth;
  }
  return llvm::Error::success();
}

template <typename T>
static bool readArray(const json::Object &object, llvm::StringLiteral name, std::vector<T> &values,
                      json::Path path) {
  const json::Array *array = object.getArray(name);
  json::Path all = path.field(name);
  if (!array) {
    all.report("expected an array");
    return false;
  }
  for (size_t index = 0; index < array->size(); ++index)
    if (!fromValue((*array)[index], values.emplace_back(), all.index(index)))
      return false;
  return true;
}

llvm::Expected<FunctionPlan> attn::readPlan(llvm::StringRef text) {
  if (llvm::Error error = checkNesting(text))
    return std::move(error);
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return value.takeError();
  json::Path::Root root("kernel plan");
  json::Path path(root);
  json::ObjectMapper mapper(*value, path);
  int64_t version = 0;
  if (!mapper || !mapper.map("version", version))
    return root.getError();
  if (version != kPlanVersion)
    return llvm::createStringError("expected kernel plan version %d, got %d", int(kPlanVersion),
                                   int(version));
  FunctionPlan plan;
  const json::Object &object = *value->getAsObject();
  if (!readArray(object, "kernels", plan.kernels, path) ||
      (object.get("ways") && !readArray(object, "ways", plan.ways, path)))
    return root.getError();
  if (const json::Value *rules = object.get("function"))
    if (!fromValue(*rules, plan.rules.emplace(), path.field("function")))
      return root.getError();
  return plan;
}
