//===- Schedule.h - the sizes and choices of a block ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A schedule is one struct from the rule that chooses it to the pass that obeys it: tables fill it
// by name, #attn.schedule and #tile.kernel hold it, options override it. A new word is a field here
// and a row of the list in Schedule.cpp. Parsers, printers and options follow from that list.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_SCHEDULE_H
#define ATTN_LIB_SCHEDULE_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <optional>
#include <string>
#include <variant>

namespace attn {

/// The sizes and choices that passes follow when they make the blocks of an attention. Results
/// never depend on them.
struct Schedule {
  /// Query rows of a block, and keys of a step. Gradients with rows that run have keys of a block,
  /// and rows of a step. 0: not chosen.
  int64_t blockM = 0, blockN = 0;
  /// Parts of the keys. A part has a block of its own.
  int64_t splits = 1;
  /// Tiles of keys, and of values, that may be in flight.
  int64_t stages = 1;
  /// Warpgroups that share the rows of a block.
  int64_t consumers = 1;
  /// Whether blocks take one tile of rows after the other.
  bool stay = false;
  /// Whether grids before this one list the tiles of keys that the mask keeps (attn.list_tiles).
  /// Blocks visit no other tiles.
  bool lists = false;
  /// -1: every step scales the accumulator. From 0: a step scales the rows whose maximum grew by
  /// more than the factor 2^slack.
  int64_t slack = -1;
  /// Whether the call and the device decide on the number of parts, up to `splits`, so that blocks
  /// fill the multiprocessors.
  bool fill = false;
  /// Whether sequences get parts by their lengths, where those fill the multiprocessors and lengths
  /// differ from sequence to sequence.
  bool balance = false;
  /// Blocks for each multiprocessor that follow the blocks that stay, where a mask makes rows
  /// differ in work. They take the rows with the least work.
  int64_t tail = 0;
  /// Whether a loop around loops computes in each of its turns what the loops inside do not read.
  /// Blocks that stay have such a loop (decision 0042).
  bool recompute = false;
  /// Whether a block holds a stage of keys until the first weights of its step are there (decision
  /// 0045).
  bool hold = false;
  /// Whether each consumer begins with the first tile of keys that its own rows need, where a mask
  /// drops tiles for some rows (decision 0047).
  bool apart = false;
  /// Columns of the query that consumers keep in registers (decision 0048).
  int64_t keep = 0;
  /// Blocks that a multiprocessor has at a time.
  int64_t resident = 1;
  /// Keys of a part, counted from key 0; 0: parts are `splits`, or those that fill the device. The
  /// bits of a row then depend on nothing but the row, its keys and the schedule (s22).
  int64_t fixedSplit = 0;

  bool operator==(const Schedule &) const = default;
};

llvm::hash_code hash_value(const Schedule &schedule);

/// Why no block can follow the schedule, on any machine; empty if one can.
std::string refuseSchedule(const Schedule &schedule);

/// The place of a word in a schedule.
using Field = std::variant<int64_t Schedule::*, bool Schedule::*>;

/// A word: its name, its place, and the blocks that obey it.
struct Word {
  /// In the IR: block_m. Options have it with dashes: block-m.
  llvm::StringLiteral name;
  Field field;
  /// Whether blocks on a CPU obey it too, and whether blocks of gradients do.
  bool isForCPU, isForGradients;
  /// For options.
  llvm::StringLiteral help;

  std::string getOptionName() const;
  bool isFlag() const { return std::holds_alternative<bool Schedule::*>(field); }
  int64_t get(const Schedule &schedule) const;
  void set(Schedule &schedule, int64_t value) const;
};

/// All words, in the order of the text.
llvm::ArrayRef<Word> getWords();

/// The word of that name, with underscores or dashes, or null.
const Word *findWord(llvm::StringRef name);

/// The words that somebody has said. The others are a rule's to choose. The options of passes,
/// pipelines and tools, CompileOptions and searches of sizes say words here, and nowhere else.
class Overrides {
public:
  /// Says a word: a number, true or false, or `auto`, which leaves it to the rule. Returns what is
  /// wrong, or nothing.
  std::string set(llvm::StringRef name, llvm::StringRef value);
  /// Says a word, or leaves it to the rule.
  void set(Field field, std::optional<int64_t> value);

  /// Says whether blocks stay, as users of tools and APIs do. Sizes that are told to stay may leave
  /// few registers, unlike the rule's sizes, so that the blocks recompute.
  void setStay(bool stay);

  /// The value that somebody has said, or nothing.
  std::optional<int64_t> get(Field field) const;
  bool has(Field field) const { return get(field).has_value(); }
  /// The same as text, as `set` takes it.
  std::string getText(const Word &word) const;

  /// Puts what was said into a schedule: the words that blocks on that kind of device obey.
  void apply(Schedule &schedule, bool isOnCPU, bool isOfGradient) const;

  /// As options: "block-m=64 stay=true".
  std::string str() const;

private:
  /// By the names of words.
  std::map<llvm::StringRef, int64_t> said;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_SCHEDULE_H
