//===- PlanAttr.cpp - kernel plans as attributes ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dictionary mirrors the JSON form field by field, so that one reader and one writer serve
// both.
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/PlanAttr.h"
#include "lib/Plan/JSON.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;
namespace json = llvm::json;

static Attribute toAttribute(Builder &builder, const json::Value &value) {
  if (const json::Object *object = value.getAsObject()) {
    SmallVector<NamedAttribute> fields;
    for (const auto &[name, field] : *object)
      fields.push_back(builder.getNamedAttr(name.str(), toAttribute(builder, field)));
    return builder.getDictionaryAttr(fields);
  }
  if (const json::Array *array = value.getAsArray()) {
    SmallVector<Attribute> elements;
    for (const json::Value &element : *array)
      elements.push_back(toAttribute(builder, element));
    return builder.getArrayAttr(elements);
  }
  if (std::optional<StringRef> text = value.getAsString())
    return builder.getStringAttr(*text);
  if (std::optional<bool> flag = value.getAsBoolean())
    return builder.getBoolAttr(*flag);
  return builder.getI64IntegerAttr(value.getAsInteger().value_or(0));
}

static json::Value toJSON(Attribute attribute) {
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    json::Object object;
    for (NamedAttribute field : dictionary)
      object[field.getName().getValue()] = toJSON(field.getValue());
    return object;
  }
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    json::Array elements;
    for (Attribute element : array)
      elements.push_back(toJSON(element));
    return elements;
  }
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.getValue();
  if (auto flag = dyn_cast<BoolAttr>(attribute))
    return flag.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  return nullptr;
}

DictionaryAttr attn::toAttribute(MLIRContext *context, const KernelPlan &plan) {
  Builder builder(context);
  return cast<DictionaryAttr>(::toAttribute(builder, toValue(plan)));
}

llvm::Expected<KernelPlan> attn::fromAttribute(DictionaryAttr attribute) {
  json::Path::Root root("kernel plan");
  KernelPlan plan;
  if (!fromValue(toJSON(attribute), plan, root))
    return root.getError();
  return plan;
}
