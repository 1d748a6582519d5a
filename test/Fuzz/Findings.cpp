//===- Findings.cpp - what broke, once each, with a file that shows it ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Findings.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/Fuzz/Fuzzer.h"
#include "test/Fuzz/Mutator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include <csignal>
#include <unistd.h>

using namespace mlir;

namespace attn::fuzz {

/// Children that one reduction may cost.
static constexpr unsigned kReductions = 150;

Findings::Findings(MLIRContext &context, Isolation &isolation, std::string directory,
                   StringRef excuses)
    : context(context), isolation(isolation), directory(std::move(directory)) {
  (void)llvm::sys::fs::create_directories(this->directory);
  auto buffer = llvm::MemoryBuffer::getFile(excuses, /*IsText=*/true);
  if (!buffer)
    return;
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (StringRef line : lines)
    if (StringRef text = line.split('#').first.trim(); !text.empty())
      excused.push_back(text.str());
}

static StringRef getKind(const Ending &ending) {
  switch (ending.kind) {
  case Ending::Finished:
    return "nothing";
  case Ending::Crashed:
    return ending.progress.signal == SIGABRT ? "abort" : "crash";
  case Ending::Hung:
    return "hang";
  case Ending::Exited:
    return "exit";
  case Ending::Reported:
    return ending.progress.faultKind == Fault::Silent ? "failure without a diagnostic"
                                                      : "invalid IR";
  }
  llvm_unreachable("all kinds are above");
}

/// The name of a function without its arguments and those of its templates.
static std::string shorten(StringRef function) {
  std::string name, text = function.str();
  StringRef anonymous = "(anonymous namespace)::";
  for (size_t at; (at = text.find(anonymous)) != std::string::npos;)
    text.erase(at, anonymous.size());
  int depth = 0;
  for (char c : text) {
    if (c == '(' && depth == 0)
      break;
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (depth == 0 && c != '>')
      name += c;
  }
  return name.empty() ? text : name;
}

/// What a message says about every program: without what it got, numbers and the insides of types.
static std::string generalize(StringRef message) {
  std::string text;
  int depth = 0;
  for (char c : message.split('\n').first.split(", got ").first) {
    bool isArrow = c == '>' && StringRef(text).ends_with("-");
    depth -= c == '>' && !isArrow && depth > 0;
    if (depth == 0 && !(llvm::isDigit(c) && StringRef(text).ends_with("N")))
      text += llvm::isDigit(c) ? 'N' : c;
    depth += c == '<';
  }
  return StringRef(text).take_front(160).rtrim().str();
}

/// Whether a function tells where something broke, and not how it was called.
static bool isTelling(const Frame &frame) {
  StringRef name = frame.function;
  for (StringRef helper :
       {"llvm::function_ref", "mlir::detail::walk", "op_definition_impl",
        " mlir::", "__mlir_ods_local", "decltype(", "llvm::cast", "llvm::dyn_cast"})
    if (name.contains(helper))
      return false;
  return true;
}

static StringRef getStage(const Progress &progress) {
  if (progress.stage == Progress::Mutate)
    return progress.parsing[0] ? "parser" : "mutation";
  return progress.stage == Progress::Verify ? StringRef("verifier") : StringRef(progress.pass);
}

Findings::Title Findings::getTitle(const Ending &ending) {
  const Progress &progress = ending.progress;
  std::string key = (getKind(ending) + " [" + getStage(progress) + "]").str();
  if (ending.kind == Ending::Reported)
    return {(getKind(ending) + ": ").str() + generalize(progress.detail), {}};
  // A hang is somewhere else each time.
  std::string raw = key;
  for (void *frame : ArrayRef(progress.frames, std::min(progress.numFrames, 24)))
    raw += " " + llvm::utohexstr(reinterpret_cast<uintptr_t>(frame));
  auto [it, isNew] = byAddress.try_emplace(raw);
  if (!isNew)
    return it->second;
  Title &title = it->second;
  title.frames = symbolize(ArrayRef(progress.frames, progress.numFrames));
  title.text = key;
  if (ending.kind == Ending::Hung)
    return title;
  unsigned ours = 0;
  for (auto [i, frame] : llvm::enumerate(title.frames))
    if (i == 0 || (frame.isOurs && isTelling(frame) && ours++ < 2))
      title.text += (title.text == key ? " in " : " < ") + shorten(frame.function);
  return title;
}

/// Whether the parts of a text between its asterisks follow each other in another one.
static bool matches(StringRef text, StringRef pattern) {
  for (StringRef part : llvm::split(pattern, '*')) {
    size_t at = text.find(part);
    if (at == StringRef::npos)
      return false;
    text = text.substr(at + part.size());
  }
  return true;
}

bool Findings::isExcused(const Title &title) const {
  return llvm::any_of(excused, [&](const std::string &text) {
    return matches(title.text, text) || llvm::any_of(title.frames, [&](const Frame &frame) {
             return matches(frame.function, text);
           });
  });
}

Ending Findings::perform(const Progress &what, StringRef text) {
  Action action{Action::Kind(what.actionKind), what.action};
  Progress before = what;
  return isolation.run([&](Progress &progress) {
    progress = before;
    progress.signal = progress.numFrames = progress.faultKind = 0;
    progress.parsing[0] = 0;
    // What crashes while parsing is a finding of the verifier or the parser.
    progress.stage = before.stage == Progress::Act ? Progress::Verify : before.stage;
    store(progress.parsing, before.stage == Progress::Mutate ? "x" : "");
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module || before.stage != Progress::Act)
      return;
    progress.stage = Progress::Act;
    act(action, *module, progress);
  });
}

bool Findings::isSame(const Ending &ending, StringRef title) {
  return ending.kind != Ending::Finished && getTitle(ending).text == title;
}

/// The text without its op number `number` and what is inside, whose results others stand in for.
/// Empty if that is not valid; "end" behind the last op.
std::string Findings::eraseOp(StringRef text, unsigned number) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "end";
  // Outer operations before what they hold.
  SmallVector<Operation *> ops;
  module->getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  if (number >= ops.size())
    return "end";
  Rng rng(0);
  if (!fuzz::eraseOp(ops[number], rng) || failed(verify(*module)))
    return std::string();
  std::string result;
  llvm::raw_string_ostream os(result);
  module->print(os, OpPrintingFlags().printGenericOpForm());
  return result;
}

std::string Findings::reduce(const Progress &what, std::string text, StringRef title) {
  ScopedDiagnosticHandler silence(&context, [](Diagnostic &) { return success(); });
  unsigned children = 0;
  for (bool changed = true; changed && what.stage == Progress::Act;) {
    changed = false;
    for (unsigned number = 0; children < kReductions;) {
      std::string smaller = eraseOp(text, number);
      if (smaller == "end")
        break;
      if (smaller.empty() || (++children, !isSame(perform(what, smaller), title))) {
        ++number;
        continue;
      }
      text = std::move(smaller);
      changed = true;
    }
    if (children >= kReductions)
      break;
  }
  return text;
}

static std::string read(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true, /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// The program that a mutant was before it broke something.
std::string Findings::dump(Replay replay, StringRef path) {
  isolation.run([&](Progress &progress) { replay(progress, path); });
  std::string text = read(path);
  (void)llvm::sys::fs::remove(path);
  return text;
}

/// A title as the name of a file.
static std::string getFileName(StringRef title) {
  std::string name;
  for (char c : title.take_front(120))
    if (llvm::isAlnum(c))
      name += c;
    else if (!StringRef(name).ends_with("-"))
      name += '-';
  return name + "-" + llvm::utohexstr(llvm::xxh3_64bits(title)) + ".mlir";
}

void Findings::add(const Ending &ending, uint64_t index, Replay replay) {
  Title title = getTitle(ending);
  if (isExcused(title)) {
    ++report.excused;
    return;
  }
  if (auto it = report.findings.find(title.text); it != report.findings.end()) {
    ++it->second;
    return;
  }
  std::string path = directory + "/" + getFileName(title.text);
  if (llvm::sys::fs::exists(path)) {
    count(ending, title.text, path);
    return;
  }
  std::string unnamed = directory + "/" + std::to_string(getpid()) + "-" + std::to_string(index);
  std::string text = dump(replay, unnamed);
  Progress what = ending.progress;
  if (what.stage == Progress::Mutate && what.parsing[0])
    text = what.isParsingType ? "\"builtin.module\"() ({\n  func.func private @f(" +
                                    std::string(what.parsing) + ")\n}) : () -> ()\n"
                              : "module attributes {a = " + std::string(what.parsing) + "} {}\n";
  // Only what can be written down is a program.
  bool isConfirmed = false;
  for (int tries = 0; tries < 3 && !isConfirmed; ++tries)
    isConfirmed = isSame(perform(what, text), title.text);
  std::string reduced =
      isConfirmed && ending.kind != Ending::Hung ? reduce(what, text, title.text) : text;
  Action action{Action::Kind(what.actionKind), what.action};
  if (!isConfirmed)
    path = unnamed + ".mlir";
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  os << "// " << title.text << (isConfirmed ? "\n" : " (not from the text)\n")
     << "// RUN: " << (what.stage == Progress::Act ? action.getCommand() : "attn-opt %s")
     << "\n// from " << what.origin << ", mutant " << index << "\n";
  for (const Frame &frame : ArrayRef(title.frames).take_front(24))
    os << "//   " << shorten(frame.function) << " " << frame.place << "\n";
  for (StringRef line : llvm::split(StringRef(ending.log).take_back(1500).rtrim(), '\n'))
    os << "// " << line << "\n";
  if (what.detail[0])
    os << "// " << StringRef(what.detail).split('\n').first << "\n";
  os << reduced;
  if (!isConfirmed) {
    if (report.unconfirmed++ < 5)
      llvm::outs() << "not from the text: " << title.text << ": " << path << "\n";
    return;
  }
  count(ending, title.text, path);
}

void Findings::count(const Ending &ending, StringRef title, StringRef path) {
  report.findings[title.str()] = 1;
  report.crashes += ending.kind == Ending::Crashed;
  llvm::outs() << "FOUND " << title << ": " << path << "\n";
  llvm::outs().flush();
}

} // namespace attn::fuzz
