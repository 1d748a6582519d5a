//===- ArithInterpreter.h - runs arith, tensor.extract and scf.while --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// Integer semantics of the operations that masks and their bounds are made of, written without the
// analysis under test.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_ARITHINTERPRETER_H
#define ATTN_TEST_UNIT_ARITHINTERPRETER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>
#include <map>
#include <vector>

namespace attn::test {

using namespace mlir;

struct Tensor {
  int64_t columns = 0; // of the last dimension
  std::vector<int64_t> elements;
};

/// Values are kept sign-extended to 128 bits. Numbering the values once makes a run cheap.
class Interpreter {
public:
  using Integer = __int128;
  using Natural = unsigned __int128;

  /// How many bits an index has, 32 on GPUs.
  int indexWidth = 64;

  int slot(Value value) {
    auto [known, inserted] = slots.try_emplace(value, int(state.size()));
    if (inserted) {
      state.push_back(0);
      tensors.push_back(nullptr);
    }
    return known->second;
  }
  void set(Value value, int64_t x) { state[slot(value)] = x; }
  void set(Value value, const Tensor *tensor) { tensors[slot(value)] = tensor; }
  int64_t get(Value value) { return int64_t(state[slot(value)]); }
  const Tensor *tensor(Value value) { return tensors[slot(value)]; }

  /// Computes one value and what it needs, in the block it is defined in.
  int64_t compute(Value value) {
    if (Operation *op = value.getDefiningOp()) {
      for (Value operand : op->getOperands())
        compute(operand);
      execute(compile(*op));
    }
    return get(value);
  }

  /// Runs the operations of a block except its terminator and unregistered ones.
  void run(Block &block) {
    auto &steps = programs[&block];
    if (steps.empty())
      for (Operation &op : block)
        if (op.isRegistered() && !op.hasTrait<OpTrait::IsTerminator>())
          steps.push_back(compile(op));
    // Nested blocks may move the map.
    std::vector<Step> *current = &steps;
    for (size_t i = 0; i < current->size(); ++i) {
      execute((*current)[i]);
      current = &programs[&block];
    }
  }

private:
  struct Step {
    Operation *op = nullptr;
    int code = 0, predicate = 0, width = 64, resultWidth = 0;
    std::vector<int> in;
    int out = -1;
    int64_t constant = 0;
  };
  enum Code {
    Constant,
    Add,
    Sub,
    Mul,
    DivU,
    DivS,
    FloorDiv,
    CeilDiv,
    RemU,
    RemS,
    Shift,
    Max,
    Min,
    And,
    Or,
    Xor,
    Compare,
    Select,
    Cast,
    CastU,
    Extract,
    Dim,
    While
  };

  Step compile(Operation &op) {
    static const std::map<StringRef, int> codes = {{"arith.constant", Constant},
                                                   {"arith.addi", Add},
                                                   {"arith.subi", Sub},
                                                   {"arith.muli", Mul},
                                                   {"arith.divui", DivU},
                                                   {"arith.divsi", DivS},
                                                   {"arith.floordivsi", FloorDiv},
                                                   {"arith.ceildivsi", CeilDiv},
                                                   {"arith.remui", RemU},
                                                   {"arith.remsi", RemS},
                                                   {"arith.shrsi", Shift},
                                                   {"arith.maxsi", Max},
                                                   {"arith.minsi", Min},
                                                   {"arith.andi", And},
                                                   {"arith.ori", Or},
                                                   {"arith.xori", Xor},
                                                   {"arith.cmpi", Compare},
                                                   {"arith.select", Select},
                                                   {"arith.index_cast", Cast},
                                                   {"arith.extsi", Cast},
                                                   {"arith.trunci", Cast},
                                                   {"arith.extui", CastU},
                                                   {"arith.index_castui", CastU},
                                                   {"tensor.extract", Extract},
                                                   {"tensor.dim", Dim},
                                                   {"scf.while", While}};
    auto code = codes.find(op.getName().getStringRef());
    EXPECT_NE(code, codes.end()) << op.getName().getStringRef().str();
    Step step;
    step.op = &op;
    step.code = code == codes.end() ? Constant : code->second;
    for (Value operand : op.getOperands())
      step.in.push_back(slot(operand));
    step.out = slot(op.getResult(0));
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      step.constant = cast<IntegerAttr>(constant.getValue()).getValue().getSExtValue();
    Type type = op.getResult(0).getType();
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      step.predicate = int(compare.getPredicate());
    step.resultWidth = countBits(type);
    if (step.code == CastU || step.code == Compare)
      type = op.getOperand(0).getType();
    step.width = countBits(type);
    return step;
  }

  int countBits(Type type) const {
    return type.isIndex() ? indexWidth : int(type.getIntOrFloatBitWidth());
  }
  static Integer wrap(Integer x, int width) {
    return Integer(Natural(x) << (128 - width)) >> (128 - width);
  }
  static Natural natural(Integer x, int width) {
    return Natural(x) << (128 - width) >> (128 - width);
  }
  static bool compare(int predicate, Integer a, Integer b, int width) {
    using Predicate = arith::CmpIPredicate;
    Natural ua = natural(a, width), ub = natural(b, width);
    switch (Predicate(predicate)) {
    case Predicate::eq:
      return a == b;
    case Predicate::ne:
      return a != b;
    case Predicate::slt:
      return a < b;
    case Predicate::sle:
      return a <= b;
    case Predicate::sgt:
      return a > b;
    case Predicate::sge:
      return a >= b;
    case Predicate::ult:
      return ua < ub;
    case Predicate::ule:
      return ua <= ub;
    case Predicate::ugt:
      return ua > ub;
    case Predicate::uge:
      return ua >= ub;
    }
    return false;
  }

  void execute(const Step &step) {
    auto in = [&](int i) { return state[step.in[i]]; };
    Integer a = step.in.empty() ? 0 : in(0), b = step.in.size() < 2 ? 0 : in(1), r = 0;
    Natural ua = natural(a, step.width), ub = natural(b, step.width);
    switch (step.code) {
    case Constant:
      r = step.constant;
      break;
    case Add:
      r = Integer(Natural(a) + Natural(b));
      break;
    case Sub:
      r = Integer(Natural(a) - Natural(b));
      break;
    case Mul:
      r = Integer(Natural(a) * Natural(b));
      break;
    case DivU:
      r = Integer(ua / ub);
      break;
    case RemU:
      r = Integer(ua % ub);
      break;
    case DivS:
      r = a / b;
      break;
    case RemS:
      r = a % b;
      break;
    case FloorDiv:
      r = a / b - (a % b != 0 && (a < 0) != (b < 0));
      break;
    case CeilDiv:
      r = a / b + (a % b != 0 && (a < 0) == (b < 0));
      break;
    case Shift:
      r = a >> int(b);
      break;
    case Max:
      r = std::max(a, b);
      break;
    case Min:
      r = std::min(a, b);
      break;
    case And:
      r = a & b;
      break;
    case Or:
      r = a | b;
      break;
    case Xor:
      r = a ^ b;
      break;
    case Compare:
      state[step.out] = -Integer(compare(step.predicate, a, b, step.width));
      return;
    case Select:
      r = a ? b : in(2);
      break;
    case Cast:
      r = a;
      break;
    case CastU:
      r = Integer(ua);
      break;
    case Extract: {
      const Tensor &tensor = *tensors[step.in[0]];
      int64_t position = int64_t(b);
      if (step.in.size() > 2) {
        EXPECT_TRUE(in(2) >= 0 && in(2) < tensor.columns);
        position = int64_t(b * tensor.columns + in(2));
      }
      ASSERT_TRUE(position >= 0 && position < int64_t(tensor.elements.size()));
      r = tensor.elements[position];
      break;
    }
    case Dim: {
      // Only of the last dimension.
      const Tensor &tensor = *tensors[step.in[0]];
      r = tensor.columns ? tensor.columns : int64_t(tensor.elements.size());
      break;
    }
    case While: {
      auto loop = cast<scf::WhileOp>(step.op);
      std::vector<Integer> carried;
      for (int i : step.in)
        carried.push_back(state[i]);
      while (true) {
        Block &before = *loop.getBeforeBody(), &after = *loop.getAfterBody();
        for (auto [argument, x] : llvm::zip_equal(before.getArguments(), carried))
          state[slot(argument)] = x;
        run(before);
        auto condition = loop.getConditionOp();
        for (unsigned i = 0; i < carried.size(); ++i)
          carried[i] = state[slot(condition.getArgs()[i])];
        if (!get(condition.getCondition()))
          break;
        for (auto [argument, x] : llvm::zip_equal(after.getArguments(), carried))
          state[slot(argument)] = x;
        run(after);
        for (unsigned i = 0; i < carried.size(); ++i)
          carried[i] = state[slot(loop.getYieldOp().getOperand(i))];
      }
      for (unsigned i = 0; i < carried.size(); ++i)
        state[slot(loop.getResult(i))] = carried[i];
      return;
    }
    }
    state[step.out] = wrap(r, step.resultWidth);
  }

  DenseMap<Value, int> slots;
  std::vector<Integer> state;
  std::vector<const Tensor *> tensors;
  std::map<Block *, std::vector<Step>> programs;
};

} // namespace attn::test

#endif // ATTN_TEST_UNIT_ARITHINTERPRETER_H
