//===- Corpus.cpp - the programs that mutation starts from ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Corpus.h"
#include "lib/Pipelines/Pipelines.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace attn::fuzz {

static void addProgram(Corpus &corpus, OwningOpRef<ModuleOp> module, std::string origin,
                       std::vector<std::string> passes) {
  CorpusProgram program{std::move(origin), std::move(module), std::move(passes), {}};
  program.module->getBody()->walk([&](Operation *op) { program.ops.push_back(op); });
  // What transform scripts do is upstream's.
  bool isScript = llvm::any_of(program.ops, [](Operation *op) {
    return op->getName().getDialectNamespace() == "transform";
  });
  if (!program.ops.empty() && !isScript)
    corpus.programs.push_back(std::move(program));
}

/// The words behind `attn-opt`'s dashes. What is no pass is sorted out by who uses them.
static std::vector<std::string> getPasses(StringRef text) {
  std::vector<std::string> passes;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    if (!line.contains("RUN:") || !line.contains("attn-opt"))
      continue;
    for (size_t at = line.find(" --"); at != StringRef::npos; at = line.find(" --", at + 1))
      passes.push_back(line.substr(at + 3)
                           .take_until([](char c) { return c == ' ' || c == '=' || c == '\n'; })
                           .str());
  }
  return passes;
}

static void addFile(Corpus &corpus, StringRef directory, StringRef path, MLIRContext &context) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return;
  std::vector<std::string> passes = getPasses((*buffer)->getBuffer());
  SmallVector<StringRef> chunks;
  (*buffer)->getBuffer().split(chunks, "// -----");
  for (auto [i, chunk] : llvm::enumerate(chunks))
    if (OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(chunk, &context))
      addProgram(corpus, std::move(module),
                 (path.drop_front(directory.size() + 1) + ":" + Twine(i + 1)).str(), passes);
}

/// Leaves a program behind at each door on the way to the two devices.
static void addRooms(Corpus &corpus, const CorpusProgram &program) {
  for (StringRef target : {"cpu", "cuda"}) {
    OwningOpRef<ModuleOp> module = cast<ModuleOp>(program.module.get()->clone());
    std::string origin = program.origin;
    auto visit = [&](StringRef room, ModuleOp at) {
      if (room != "problem" && room != "thread")
        addProgram(corpus, cast<ModuleOp>(at->clone()), (origin + "@" + target + "-" + room).str(),
                   {});
    };
    PassManager pm(module->getContext());
    PipelineOptions options;
    options.target = target.str();
    buildPipeline(pm, options, target == "cuda" ? Room::Async : Room::Vectors, visit);
    // A program that has no way there ends at the last door that it reached.
    (void)pm.run(*module);
  }
}

static void collect(Corpus &corpus) {
  llvm::SetVector<NamedAttribute> attributes;
  llvm::SetVector<Type> types;
  for (const CorpusProgram &program : corpus.programs)
    for (Operation *op : program.ops) {
      attributes.insert_range(op->getAttrs());
      types.insert_range(op->getOperandTypes());
      types.insert_range(op->getResultTypes());
      if (auto dictionary = op->getAttrDictionary())
        attributes.insert_range(dictionary.getValue());
    }
  for (NamedAttribute attribute : attributes)
    if (attribute.getName() != "operandSegmentSizes" && attribute.getName() != "sym_name")
      corpus.attributes.push_back(attribute);
  corpus.types.assign(types.begin(), types.end());
}

Corpus loadCorpus(StringRef directory, MLIRContext &context) {
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) { return success(); });
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator it(directory, error), end; it != end && !error;
       it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".mlir")
      paths.push_back(it->path());
  llvm::sort(paths);
  Corpus corpus;
  for (const std::string &path : paths)
    addFile(corpus, directory, path, context);
  size_t count = corpus.programs.size();
  for (size_t i = 0; i < count; ++i) {
    bool isProblem = false;
    corpus.programs[i].module->walk(
        [&](Operation *op) { isProblem |= op->getName().getStringRef() == "attn.attention"; });
    // Every third is enough of each room.
    if (isProblem && i % 3 == 0) {
      CorpusProgram problem{corpus.programs[i].origin,
                            cast<ModuleOp>(corpus.programs[i].module.get()->clone()),
                            {},
                            {}};
      addRooms(corpus, problem);
    }
  }
  collect(corpus);
  return corpus;
}

} // namespace attn::fuzz
