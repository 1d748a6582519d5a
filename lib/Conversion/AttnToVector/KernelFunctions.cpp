//===- KernelFunctions.cpp - kernels that steps share ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/KernelFunctions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

static std::optional<int64_t> getConstant(Value operand) {
  return operand ? getConstantIntValue(operand) : std::nullopt;
}

/// Of any number of rows, if it is a buffer.
static Type getOfAnyRows(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getRank() == 0)
    return type;
  SmallVector<int64_t> shape(memref.getShape());
  shape.front() = ShapedType::kDynamic;
  // Where rows lie depends on no number of them.
  return MemRefType::get(shape, memref.getElementType(), memref.getLayout(),
                         memref.getMemorySpace());
}

static std::string getKey(StringRef name, ArrayRef<Value> operands) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << name;
  for (Value operand : operands) {
    stream << ' ';
    if (operand)
      stream << getOfAnyRows(operand.getType());
    else
      stream << '-';
  }
  return key;
}

bool KernelFunctions::Function::covers(const Function &other) const {
  return key == other.key &&
         llvm::all_of_zip(constants, other.constants,
                          [](auto own, auto given) { return !own || own == given; }) &&
         llvm::all_of_zip(types, other.types, [](Type own, Type given) {
           return own == given || own == getOfAnyRows(given);
         });
}

void KernelFunctions::Function::addCall(OpBuilder &b, Location loc, const Operands &operands) {
  SmallVector<Value> passed;
  for (auto [operand, constant, type] : llvm::zip_equal(operands, constants, types))
    if (operand && !constant)
      passed.push_back(operand.getType() == type
                           ? operand
                           : memref::CastOp::create(b, loc, type, operand).getResult());
  calls.push_back({func::CallOp::create(b, loc, op, passed), operands});
}

static std::string getFreeSymbol(ModuleOp module, StringRef name) {
  std::string symbol = ("attn." + name).str();
  for (unsigned number = 1; module.lookupSymbol(symbol); ++number)
    symbol = ("attn." + name + "." + Twine(number)).str();
  return symbol;
}

/// An empty one that is not called.
static func::FuncOp createFunction(ModuleOp module, StringRef name, ArrayRef<Type> arguments) {
  auto b = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(b, module.getLoc(), getFreeSymbol(module, name),
                                       b.getFunctionType(arguments, {}));
  function.setPrivate();
  function->setAttr("llvm.linkage",
                    LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
  return function;
}

/// Creates the function that `wanted` describes.
void KernelFunctions::define(Emitter &b, Function &wanted, ArrayRef<Value> operands, Body body) {
  SmallVector<Type> arguments;
  for (auto [type, constant] : llvm::zip_equal(wanted.types, wanted.constants))
    if (type && !constant)
      arguments.push_back(type);
  auto module = b.getBlock()->getParentOp()->getParentOfType<ModuleOp>();
  wanted.op = createFunction(module, wanted.name, arguments);
  OpBuilder builder(b.getContext());
  builder.setInsertionPointToStart(wanted.op.addEntryBlock());
  Emitter inside(b.getLoc(), builder, b.target);
  SmallVector<Value> values;
  unsigned next = 0;
  for (auto [operand, constant] : llvm::zip_equal(operands, wanted.constants))
    values.push_back(!operand   ? Value()
                     : constant ? inside.index(*constant)
                                : Value(wanted.op.getArgument(next++)));
  body(inside, values);
  func::ReturnOp::create(inside);
}

/// Gives a function the calls of another, which ends.
void KernelFunctions::takeCalls(Function &from, Function &to) {
  for (Call &call : from.calls) {
    OpBuilder b(call.op);
    to.addCall(b, call.op.getLoc(), call.operands);
    call.op.erase();
  }
  from.op.erase();
}

void KernelFunctions::call(Emitter &b, const std::string &name, ArrayRef<Value> operands,
                           Body body) {
  auto getType = [](Value operand) { return operand ? operand.getType() : Type(); };
  Function wanted{name,
                  getKey(name, operands),
                  llvm::map_to_vector(operands, getConstant),
                  llvm::map_to_vector(operands, getType),
                  {},
                  {}};
  auto known = llvm::find_if(functions, [&](const Function &f) { return f.covers(wanted); });
  if (known != functions.end())
    return known->addCall(b, b.getLoc(), Operands(operands));
  define(b, wanted, operands, body);
  wanted.addCall(b, b.getLoc(), Operands(operands));
  llvm::erase_if(functions, [&](Function &other) {
    if (!wanted.covers(other))
      return false;
    takeCalls(other, wanted);
    return true;
  });
  functions.push_back(std::move(wanted));
}

/// Puts the body of a function where it is called.
static void inlineCall(func::FuncOp function, func::CallOp call) {
  Block &block = function.getBody().front();
  for (auto [argument, operand] : llvm::zip_equal(block.getArguments(), call.getOperands()))
    argument.replaceAllUsesWith(operand);
  block.getTerminator()->erase();
  call->getBlock()->getOperations().splice(call->getIterator(), block.getOperations());
  call->erase();
  function->erase();
}

void KernelFunctions::finish() {
  for (Function &function : functions) {
    if (function.calls.size() == 1) {
      inlineCall(function.op, function.calls.front().op);
      continue;
    }
    // Those that it took the calls of had the name.
    auto module = function.op->getParentOfType<ModuleOp>();
    function.op.setSymName("");
    function.op.setSymName(getFreeSymbol(module, function.name));
    for (Call &call : function.calls)
      call.op.setCallee(function.op.getSymName());
  }
}
