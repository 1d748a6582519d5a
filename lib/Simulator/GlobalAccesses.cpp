//===- GlobalAccesses.cpp - who accessed which element of global memory -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/GlobalAccesses.h"
#include "lib/Simulator/Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn::sim {

GlobalAccesses::GlobalAccesses(const Program &program, ArrayRef<Argument> arguments) {
  rows.resize(arguments.size());
  BitVector written(arguments.size()), accessed(arguments.size());
  auto mark = [&](mlir::Value memory, bool writes) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(memory);
    if (!argument || !mlir::isa<mlir::MemRefType>(memory.getType()))
      return;
    // Blocks that add meet other blocks that add.
    shared |=
        writes ? accessed.test(argument.getArgNumber()) : written.test(argument.getArgNumber());
    (writes ? written : accessed).set(argument.getArgNumber());
  };
  for (const Instruction &instruction : program.instructions) {
    bool writes = instruction.code == Code::Store || instruction.code == Code::ScatterAdd ||
                  instruction.code == Code::StoreAsync;
    if (instruction.op && instruction.code != Code::Dim)
      for (auto [index, operand] : enumerate(instruction.op->getOperands()))
        mark(operand, writes && index == 1);
    if (instruction.isAdd)
      mark(instruction.op->getOperand(1), /*writes=*/false);
  }
  for (auto [argument, its] : zip_equal(arguments, rows)) {
    ArrayRef<int64_t> shape = shapes.emplace_back(argument.memory.shape);
    if (!argument.isScalar && written.test(shapes.size() - 1))
      its.resize(shape.empty() ? 1 : product_of(shape.drop_back()));
  }
}

static StringRef describe(GlobalAccesses::Kind kind) {
  switch (kind) {
  case GlobalAccesses::Kind::Read:
    return "read";
  case GlobalAccesses::Kind::Write:
    return "written";
  case GlobalAccesses::Kind::Add:
    return "added to";
  }
  return "";
}

/// "row 3, column 0": the position of an element.
static std::string describeElement(ArrayRef<int64_t> shape, int64_t element) {
  SmallVector<int64_t> position(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    position[dim] = element % shape[dim];
    element /= shape[dim];
  }
  return "[" + join(map_range(position, [](int64_t i) { return std::to_string(i); }), ", ") + "]";
}

static std::string describeBlock(const std::array<int64_t, 3> &block) {
  return formatv("block ({0}, {1}, {2})", block[0], block[1], block[2]);
}

std::optional<Finding> GlobalAccesses::check(uint32_t link, unsigned argument,
                                             int64_t element) const {
  const Access &access = accesses.back();
  for (; link; link = links[link].previous) {
    const Access &past = accesses[links[link].access];
    bool isOfBlock = past.block == access.block;
    if (&past == &access || (isOfBlock && past.fiber == access.fiber && !past.isAsync))
      continue;
    if (isOfBlock && all_of(agents, [&](const Agent *agent) {
          return all_of(past.epochs,
                        [&](Epoch epoch) { return agent->knowledge.all.knows(epoch); });
        }))
      continue;
    std::string who = !isOfBlock     ? describeBlock(past.block)
                      : past.isAsync ? "asynchronous hardware"
                                     : "another warpgroup";
    return Finding{
        Finding::Kind::Race,
        access.op,
        formatv("element {0} of argument {1} is {2} by {3}, and nothing orders that against {4}",
                describeElement(shapes[argument], element), argument, describe(access.kind),
                describeBlock(access.block), who),
        {{past.op, formatv("it is {0} here", describe(past.kind))}}};
  }
  return std::nullopt;
}

uint32_t GlobalAccesses::link(uint32_t previous) {
  links.push_back({uint32_t(accesses.size() - 1), previous});
  return links.size() - 1;
}

std::optional<Finding> GlobalAccesses::touch(Cell &cell, unsigned argument, int64_t element) {
  if (last && cell == last->first) {
    cell = last->second;
    return std::nullopt;
  }
  Kind kind = accesses.back().kind;
  Cell before = cell;
  for (uint32_t past :
       {cell.write, kind == Kind::Add ? 0 : cell.adds, kind == Kind::Read ? 0 : cell.reads})
    if (std::optional<Finding> finding = check(past, argument, element))
      return finding;
  switch (kind) {
  case Kind::Read:
    cell.reads = link(cell.reads);
    break;
  case Kind::Write:
    cell = {link(0), 0, 0};
    break;
  case Kind::Add:
    cell.adds = link(cell.adds);
  }
  last = {before, cell};
  return std::nullopt;
}

std::optional<Finding> GlobalAccesses::touch(unsigned argument, int64_t row, int64_t begin,
                                             int64_t end) {
  Row &its = rows[argument][row];
  int64_t width = shapes[argument].empty() ? 1 : shapes[argument].back();
  if (its.elements.empty() && end - begin == width)
    return touch(its.all, argument, row * width);
  if (its.elements.empty())
    its.elements.assign(width, its.all);
  for (int64_t column = begin; column < end; ++column)
    if (std::optional<Finding> finding =
            touch(its.elements[column], argument, row * width + column))
      return finding;
  return std::nullopt;
}

} // namespace attn::sim
