//===- ScheduleTest.cpp - words of a schedule, by name ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Schedule/Schedule.h"
#include "gtest/gtest.h"
#include <set>

using namespace attn;

// Text, options, hashes and comparison follow from the list: each field has its own word.
TEST(Schedule, EveryWordHasAFieldOfItsOwn) {
  std::set<std::string> names;
  for (const Word &word : getWords()) {
    EXPECT_TRUE(names.insert(word.name.str()).second) << word.name.str();
    EXPECT_EQ(findWord(word.name), &word);
    EXPECT_EQ(findWord(word.getOptionName()), &word);
    Schedule changed;
    word.set(changed, !word.get(changed));
    EXPECT_NE(changed, Schedule()) << word.name.str();
    EXPECT_NE(hash_value(changed), hash_value(Schedule())) << word.name.str();
    for (const Word &other : getWords())
      EXPECT_EQ(other.get(changed) == other.get(Schedule()), &other != &word) << word.name.str();
  }
}

TEST(Overrides, SayWordsByName) {
  Overrides said;
  EXPECT_EQ(said.set("block-m", "64"), "");
  EXPECT_EQ(said.set("stay", "true"), "");
  EXPECT_EQ(said.set("slack", "-1"), "");
  EXPECT_EQ(said.str(), "block-m=64 stay=true slack=-1");
  EXPECT_EQ(said.set("slack", "auto"), "");
  EXPECT_EQ(said.str(), "block-m=64 stay=true");
  EXPECT_EQ(said.get(&Schedule::blockM), 64);
  EXPECT_FALSE(said.has(&Schedule::slack));
  EXPECT_EQ(said.set("stay", "perhaps"), "expected stay=true, false or auto, got 'perhaps'");
  EXPECT_EQ(said.set("block_n", "many"), "expected a number or auto for block-n, got 'many'");
  EXPECT_EQ(said.set("blocks", "2"), "expected a word of a schedule, got 'blocks'");
}

// What is not said stays the rule's, and a device or a pass of gradients obeys what it can.
TEST(Overrides, ApplyWhereBlocksObey) {
  Overrides said;
  said.set(&Schedule::blockM, 64);
  said.set(&Schedule::stages, 3);
  said.setStay(true);
  auto apply = [&](bool isOnCPU, bool isOfGradient) {
    Schedule schedule{.blockM = 128, .blockN = 96, .stages = 2};
    said.apply(schedule, isOnCPU, isOfGradient);
    return schedule;
  };
  EXPECT_EQ(apply(false, false),
            (Schedule{.blockM = 64, .blockN = 96, .stages = 3, .stay = true, .recompute = true}));
  EXPECT_EQ(apply(true, false), (Schedule{.blockM = 64, .blockN = 96, .stages = 2}));
  EXPECT_EQ(apply(false, true),
            (Schedule{.blockM = 64, .blockN = 96, .stages = 3, .recompute = true}));
}
