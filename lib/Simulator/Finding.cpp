//===- Finding.cpp - what the simulator objects to --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Finding.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

using namespace mlir;

namespace attn::sim {

llvm::StringRef getName(Finding::Kind kind) {
  switch (kind) {
  case Finding::Kind::EarlyRead:
    return "early read";
  case Finding::Kind::EarlyWrite:
    return "early write";
  case Finding::Kind::MissingFence:
    return "missing fence";
  case Finding::Kind::InFlight:
    return "in flight";
  case Finding::Kind::Transaction:
    return "transaction count";
  case Finding::Kind::Phase:
    return "phase";
  case Finding::Kind::Deadlock:
    return "deadlock";
  case Finding::Kind::Race:
    return "race";
  case Finding::Kind::OutOfBounds:
    return "out of bounds";
  case Finding::Kind::Budget:
    return "budget";
  case Finding::Kind::Uninitialized:
    return "uninitialized";
  case Finding::Kind::Unfinished:
    return "unfinished";
  case Finding::Kind::Invalid:
    return "invalid";
  }
  return "";
}

std::string describeLocation(Location location) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto loc = location->findInstanceOf<FileLineColLoc>())
    stream << loc.getFilename().getValue() << ':' << loc.getLine() << ':' << loc.getColumn();
  else
    stream << location;
  return text;
}

void Finding::emit() const {
  InFlightDiagnostic diagnostic = emitError(op->getLoc());
  diagnostic << getName(kind) << ": " << text;
  for (const Note &note : notes)
    diagnostic.attachNote(note.op->getLoc()) << note.text;
}

void Finding::print(llvm::raw_ostream &os) const {
  os << describeLocation(op->getLoc()) << ": " << getName(kind) << ": " << text << '\n';
  for (const Note &note : notes)
    os << describeLocation(note.op->getLoc()) << ": note: " << note.text << '\n';
}

} // namespace attn::sim
