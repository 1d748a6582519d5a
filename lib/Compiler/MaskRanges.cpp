//===- MaskRanges.cpp - the analysis of masks as numbers --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The bounds that a kernel computes for each of its blocks, without a kernel: they are emitted as a
// function of the block, which the interpreter calls.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Function.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Registration/Registration.h"
#include "lib/Source/Signature.h"
#include "lib/Support/ForkGate.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir;
using llvm::Expected, llvm::formatv;

namespace attn {

static Status fail(const Twine &message) {
  return Status{StatusCode::InvalidArgument, message.str(), ""};
}

/// The attention of the function, or null where there are several or none.
static AttentionOp findAttention(func::FuncOp function) {
  AttentionOp found;
  bool isOne = true;
  function.walk([&](AttentionOp op) {
    isOne &= !found;
    found = op;
  });
  return isOne ? found : nullptr;
}

//===----------------------------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------------------------===//

/// A row-major copy of a tensor in host memory.
static Expected<RuntimeValue> copyTensor(const TensorView &view, ElementKind kind) {
  ArrayRef<int64_t> shape(view.shape, view.rank);
  Expected<Array> array = Array::allocate(kind, shape);
  if (!array)
    return array.takeError();
  int64_t bytes = getByteSize(kind);
  SmallVector<int64_t> index(view.rank, 0);
  for (int64_t at = 0; at < array->size(); ++at) {
    int64_t from = 0;
    for (auto [i, x] : llvm::enumerate(index))
      from += x * (view.strides ? view.strides[i] : array->getStrides()[i]);
    std::memcpy(array->dataAs<char>() + at * bytes, static_cast<char *>(view.data) + from * bytes,
                bytes);
    for (size_t i = index.size(); i > 0; --i) {
      if (++index[i - 1] < shape[i - 1])
        break;
      index[i - 1] = 0;
    }
  }
  Expected<TensorRef> tensor = DenseTensor::fromArray(*array);
  if (!tensor)
    return tensor.takeError();
  return RuntimeValue(*tensor);
}

/// What the interpreter calls the function with. The first three are shapes.
static Result<SmallVector<RuntimeValue>> readArguments(const ParsedSource &parsed,
                                                       LaunchArguments arguments) {
  Expected<KernelSignature> signature = getSignature(parsed.entry);
  if (!signature)
    return Status{StatusCode::InvalidKernel, "source: " + llvm::toString(signature.takeError()),
                  ""};
  CallRules rules = makeRules(*signature, parsed.argumentNames, parsed.extents);
  if (arguments.size() != rules.numArguments)
    return fail(formatv("arguments: expected {0}, got {1}", rules.numArguments, arguments.size()));
  SmallVector<RuntimeValue> values;
  for (auto [i, type] : llvm::enumerate(func::FuncOp(parsed.entry).getArgumentTypes())) {
    const CallRules::Value &rule = rules.values[i];
    if (rule.isScalar) {
      // The factor of the products, which no mask reads.
      values.push_back(isa<FloatType>(type) ? RuntimeValue::real(0) : RuntimeValue::integer(0));
      continue;
    }
    if (Status status = checkShape(rule, arguments[i]); !status.ok())
      return status;
    const TensorView &view = arguments[i].getTensor();
    ArrayRef<int64_t> shape(view.shape, view.rank);
    bool isShape = i < 3;
    if (!isShape && !llvm::is_contained(shape, 0) && !view.data)
      return fail(rule.name + ": expected a tensor in host memory, got none");
    Expected<RuntimeValue> value =
        isShape ? makeShapeOnly(type, shape) : copyTensor(view, signature->arguments[i].kind);
    if (!value)
      return fail(rule.name + ": " + llvm::toString(value.takeError()));
    values.push_back(*value);
  }
  return values;
}

//===----------------------------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------------------------===//

/// A function of the arguments and a block's b, h, first row and end of rows, that returns begin,
/// full begin, full end and end of the keys.
static func::FuncOp emitFunction(AttentionOp op, int64_t tileKeys) {
  auto entry = op->getParentOfType<func::FuncOp>();
  Location loc = op.getLoc();
  OpBuilder builder(entry);
  Type index = builder.getIndexType();
  SmallVector<Type> inputs(entry.getArgumentTypes()), results(4, index);
  inputs.append(4, index);
  auto function =
      func::FuncOp::create(builder, loc, "ranges", builder.getFunctionType(inputs, results));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  mapping.map(entry.getArguments(), body->getArguments().drop_back(4));
  // Masks read what stands before the op.
  Operation *probe = nullptr;
  for (Operation &each : entry.getBody().front()) {
    probe = builder.clone(each, mapping);
    if (&each == op)
      break;
  }
  auto copy = cast<AttentionOp>(probe);
  builder.setInsertionPoint(probe);
  MaskTiles tiles = MaskTiles::analyze(copy.getMask(), factOf);
  Value keys = tensor::DimOp::create(builder, loc, copy.getKey(), 2);
  ValueRange at = body->getArguments().take_back(4);
  MaskBlock block = {at[0], at[1], at[2], at[3], keys};
  MaskTiles::Ranges ranges = tiles.emitRanges(builder, loc, block, tileKeys, true);
  func::ReturnOp::create(builder, loc,
                         ValueRange{ranges.begin, ranges.fullBegin, ranges.fullEnd, ranges.end});
  probe->erase();
  return function;
}

Result<std::vector<MaskRange>> findMaskRanges(std::string_view source, LaunchArguments arguments,
                                              int64_t tileRows, int64_t tileKeys) {
  ForkGate gate;
  for (auto [name, size] : {std::pair("tile rows", tileRows), std::pair("tile keys", tileKeys)})
    if (size < 1 || size > 1 << 20)
      return fail(formatv("{0}: expected 1 to 2^20, got {1}", name, size));
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Result<ParsedSource> parsed = parseSource(context, source, {});
  if (!parsed)
    return parsed.takeStatus();
  DiagnosticCollector diagnostics(context);
  PassManager pm(&context);
  pm.addPass(createExpandVariantsPass());
  if (failed(pm.run(*parsed->module)))
    return diagnostics.fail("expected a mask that expands, got errors");
  AttentionOp op = findAttention(parsed->entry);
  if (!op || parsed->entry.getNumArguments() < 3)
    return Status{StatusCode::InvalidKernel,
                  "source: expected a function of q, k and v with one attention", ""};
  Result<SmallVector<RuntimeValue>> values = readArguments(*parsed, arguments);
  if (!values)
    return values.takeStatus();
  func::FuncOp function = emitFunction(op, tileKeys);

  ArrayRef<int64_t> shape((*values)[0].getTensor()->getShape());
  int64_t batches = shape[0], heads = shape[1], rows = shape[2];
  std::vector<MaskRange> ranges;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t first = 0; first < rows; first += tileRows) {
        SmallVector<RuntimeValue> call(*values);
        for (int64_t number : {b, h, first, std::min(first + tileRows, rows)})
          call.push_back(RuntimeValue::integer(number));
        Expected<InterpreterResult> result = interpret(function, call);
        if (!result)
          return Status{StatusCode::InvalidKernel, llvm::toString(result.takeError()), ""};
        auto number = [&](size_t i) { return result->values[i].getScalar().i; };
        ranges.push_back({number(0), number(1), number(2), number(3)});
      }
  return ranges;
}

} // namespace attn
