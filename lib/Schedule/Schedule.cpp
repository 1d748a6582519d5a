//===- Schedule.cpp - the sizes and choices of a block ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Schedule/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using llvm::formatv;

//===----------------------------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------------------------===//

static constexpr Word kWords[] = {
    {"block_m", &Schedule::blockM, true, true, "query rows of a block"},
    {"block_n", &Schedule::blockN, true, true, "keys of a step"},
    {"splits", &Schedule::splits, true, false, "parts the keys of a block are split into"},
    {"stages", &Schedule::stages, false, true, "tiles of keys, and of values, in flight on a GPU"},
    {"consumers", &Schedule::consumers, false, true, "warpgroups that share the rows of a block"},
    {"stay", &Schedule::stay, false, false, "whether blocks stay on a GPU"},
    {"lists", &Schedule::lists, false, false,
     "whether the tiles that a mask keeps are listed before, on a GPU"},
    {"slack", &Schedule::slack, false, false,
     "by which factor 2^slack a maximum may lag on a GPU, from 0 to 16; -1: every step scales"},
    {"fill", &Schedule::fill, false, false,
     "whether the parts of the keys, up to splits, fill the GPU"},
    {"balance", &Schedule::balance, false, false,
     "whether sequences on a GPU get parts by their lengths"},
    {"tail", &Schedule::tail, false, false,
     "blocks for each multiprocessor that follow the blocks that stay"},
    {"recompute", &Schedule::recompute, false, true,
     "whether blocks on a GPU with a loop around loops, as those that stay, compute in each of its "
     "turns what those inside do not read"},
    {"hold", &Schedule::hold, false, false,
     "whether blocks on a GPU hold a stage of keys until the first weights of its step are there"},
    {"apart", &Schedule::apart, false, false,
     "whether consumers of a block on a GPU begin apart, each with the first tile of keys that its "
     "rows need"},
    {"keep", &Schedule::keep, false, false,
     "columns of the query that consumers on a GPU keep in registers"},
    {"resident", &Schedule::resident, false, false, "blocks that a multiprocessor has at a time"},
    {"fixed_split", &Schedule::fixedSplit, true, false,
     "keys of a part, counted from the first key, so that bits do not depend on the batch; 0: the "
     "number of parts is said"}};

llvm::ArrayRef<Word> attn::getWords() { return kWords; }

std::string Word::getOptionName() const { return llvm::join(llvm::split(name, '_'), "-"); }

int64_t Word::get(const Schedule &schedule) const {
  return std::visit([&](auto member) { return int64_t(schedule.*member); }, field);
}

void Word::set(Schedule &schedule, int64_t value) const {
  std::visit([&](auto member) { schedule.*member = value; }, field);
}

const Word *attn::findWord(llvm::StringRef name) {
  std::string spelled = llvm::join(llvm::split(name, '-'), "_");
  const Word *word = llvm::find_if(kWords, [&](const Word &each) { return each.name == spelled; });
  return word == std::end(kWords) ? nullptr : word;
}

llvm::hash_code attn::hash_value(const Schedule &schedule) {
  llvm::hash_code code(0);
  for (const Word &word : kWords)
    code = llvm::hash_combine(code, word.get(schedule));
  return code;
}

//===----------------------------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------------------------===//

/// The positive multiple of `step` that is next to `size`.
static int64_t findNearestMultiple(int64_t size, int64_t step) {
  int64_t positive = std::max<int64_t>(size, step), below = positive - positive % step;
  return positive - below <= step / 2 ? below : below + step;
}

std::string attn::refuseSchedule(const Schedule &schedule) {
  // schedule_c3: where tiles are listed, keys are not split and blocks do not stay
  if (schedule.lists && (schedule.splits > 1 || schedule.stay))
    return formatv("expected one part of the keys and blocks that go where tiles are listed, got "
                   "{0}{1}",
                   schedule.splits, schedule.stay ? " and blocks that stay" : "");
  // schedule_c4: a slack is at most 16, so that sums of weights of 2^slack are finite
  if (schedule.slack < -1 || schedule.slack > 16)
    return formatv("expected a slack from 0 to 16, or -1 for none, got {0}", schedule.slack);
  // schedule_c5: where parts fill the device, blocks do not stay
  if (schedule.fill && schedule.stay)
    return "expected blocks that go where parts fill the device, got ones that stay";
  // schedule_c9: parts that fill the device are up to 1024
  if (schedule.fill && schedule.splits > 1024)
    return formatv("expected up to 1024 parts where they fill the device, got {0}",
                   schedule.splits);
  // schedule_c6: a tail is up to 31 blocks behind blocks that stay
  if (schedule.tail < 0 || schedule.tail > 31 || (schedule.tail > 0 && !schedule.stay))
    return formatv("expected a tail of at most 31 blocks behind blocks that stay, got {0}{1}",
                   schedule.tail, schedule.stay ? "" : " behind none");
  // schedule_c7: registers have up to 256 columns of the query, in steps of 16
  if (schedule.keep < 0 || schedule.keep > 256 || schedule.keep % 16 != 0)
    return formatv("expected at most 256 columns of the query to keep, in multiples of 16, got {0}",
                   schedule.keep);
  // schedule_c8: a multiprocessor has 1 to 8 blocks at a time, and 1 where they stay
  if (schedule.resident < 1 || schedule.resident > (schedule.stay ? 1 : 8))
    return formatv("expected 1 to 8 blocks on a multiprocessor, or 1 that stays, got {0}{1}",
                   schedule.resident, schedule.stay ? " that stay" : "");
  // schedule_c10: a fixed split is whole tiles of block_n keys
  int64_t tile = std::max<int64_t>(schedule.blockN, 1);
  if (schedule.fixedSplit < 0 || schedule.fixedSplit % tile != 0)
    return formatv("expected a fixed_split of whole tiles of {0} keys, got {1}; the nearest is {2}",
                   tile, schedule.fixedSplit, findNearestMultiple(schedule.fixedSplit, tile));
  // schedule_c11: a fixed split says how many parts there are, of tiles that nothing lists
  if (schedule.fixedSplit > 0 &&
      (schedule.splits > 1 || schedule.fill || schedule.balance || schedule.lists))
    return formatv("expected a fixed_split without splits, fill, balance and lists, got {0} "
                   "splits{1}{2}{3}",
                   schedule.splits, schedule.fill ? " that fill" : "",
                   schedule.balance ? " by lengths" : "", schedule.lists ? " and lists" : "");
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Overrides
//===----------------------------------------------------------------------------------------===//

std::string Overrides::set(llvm::StringRef name, llvm::StringRef value) {
  const Word *word = findWord(name);
  if (!word)
    return formatv("expected a word of a schedule, got '{0}'", name);
  if (value == "auto") {
    said.erase(word->name);
    return {};
  }
  int64_t number = 0;
  if (word->isFlag()) {
    if (value != "true" && value != "false")
      return formatv("expected {0}=true, false or auto, got '{1}'", word->getOptionName(), value);
    number = value == "true";
  } else if (value.getAsInteger(10, number)) {
    return formatv("expected a number or auto for {0}, got '{1}'", word->getOptionName(), value);
  }
  said[word->name] = number;
  return {};
}

void Overrides::set(Field field, std::optional<int64_t> value) {
  const Word *word = llvm::find_if(kWords, [&](const Word &each) { return each.field == field; });
  if (value)
    said[word->name] = *value;
  else
    said.erase(word->name);
}

void Overrides::setStay(bool stay) {
  set(&Schedule::stay, stay);
  if (stay)
    set(&Schedule::recompute, true);
}

std::optional<int64_t> Overrides::get(Field field) const {
  for (const Word &word : kWords)
    if (auto found = said.find(word.name); word.field == field && found != said.end())
      return found->second;
  return std::nullopt;
}

void Overrides::apply(Schedule &schedule, bool isOnCPU, bool isOfGradient) const {
  for (const Word &word : kWords)
    if (auto found = said.find(word.name); found != said.end() && (word.isForCPU || !isOnCPU) &&
                                           (word.isForGradients || !isOfGradient))
      word.set(schedule, found->second);
}

std::string Overrides::getText(const Word &word) const {
  auto found = said.find(word.name);
  if (found == said.end())
    return "auto";
  return !word.isFlag() ? std::to_string(found->second) : found->second ? "true" : "false";
}

std::string Overrides::str() const {
  std::string text;
  for (const Word &word : kWords)
    if (has(word.field))
      text += (text.empty() ? "" : " ") + word.getOptionName() + "=" + getText(word);
  return text;
}
