//===- RaggedSource.cpp - functions of rows of sequences -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/RaggedSource.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn::test {

/// The type of the rows that a view shows, a dimension less.
static std::string getRows(llvm::StringRef view) {
  return ("tensor<" + view.substr(llvm::StringRef("tensor<?x").size())).str();
}

static void append(std::string &list, const std::string &part) {
  list += (list.empty() ? "" : ", ") + part;
}

void RaggedSource::addOperand(const std::string &name, const std::string &view, char of) {
  std::string rows = getRows(view);
  append(arguments, "%rows_" + name + ": " + rows);
  views += llvm::formatv("  %{0} = attn.ragged %rows_{0}[%offsets_{1}] up_to %max_{1} : {2}, {3} "
                         "-> {4}\n",
                         name, of, rows, offsets, view);
  operands[name] = rows;
}

void RaggedSource::addCaptured(const Variant &variant) {
  append(arguments, llvm::formatv("%offsets_q: {0}, %offsets_k: {0}, %most_q: tensor<?xi8>, "
                                  "%most_k: tensor<?xi8>",
                                  offsets));
  for (const Capture &capture : variant.captures)
    if (capture.kind != Capture::Offsets)
      append(arguments, std::string(capture.name) + ": " + capture.type);
}

void RaggedSource::addResult(const std::string &value, const std::string &view, char like,
                             bool clears) {
  places += llvm::formatv("  %count{0} = tensor.dim %rows_{1}, %zero : {2}\n"
                          "  %heads{0} = tensor.dim %rows_{1}, %one : {2}\n",
                          numResults, like, operands.at(std::string(1, like)));
  places += llvm::formatv("  %empty{0} = tensor.empty(%count{0}, %heads{0}) : {1}\n", numResults,
                          getRows(view));
  if (clears) {
    llvm::StringRef element = llvm::StringRef(view).rsplit('x').second.drop_back();
    places += llvm::formatv("  %none{0} = arith.constant 0.0 : {2}\n"
                            "  %zeros{0} = linalg.fill ins(%none{0} : {2}) outs(%empty{0} : {1}) "
                            "-> {1}\n",
                            numResults, getRows(view), element);
  }
  places += llvm::formatv("  %placed{0} = attn.place {2}[%offsets_{3}] into %{6}{0} : {4}, {5} "
                          "-> {1}\n",
                          numResults, getRows(view), value, like == 'q' ? 'q' : 'k', view, offsets,
                          clears ? "zeros" : "empty");
  append(types, getRows(view));
  append(values, "%placed" + std::to_string(numResults++));
}

std::string RaggedSource::write(const std::string &name, const std::string &body) const {
  return llvm::formatv("func.func @{0}({1}) -> ({2}) {{\n"
                       "  %zero = arith.constant 0 : index\n  %one = arith.constant 1 : index\n"
                       "  %max_q = tensor.dim %most_q, %zero : tensor<?xi8>\n"
                       "  %max_k = tensor.dim %most_k, %zero : tensor<?xi8>\n{3}{4}{5}"
                       "  return {6} : {2}\n}\n",
                       name, arguments, types, views, body, places, values);
}

} // namespace attn::test
