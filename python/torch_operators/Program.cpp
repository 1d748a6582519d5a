//===- Program.cpp - the kernels of one source ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "Program.h"
#include "Error.h"
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

using namespace attn_torch;

static Source read(const std::string &text) {
  try {
    return Source(text);
  } catch (const std::logic_error &error) {
    refuse("source: expected what attn wrote, got text that does not read (" +
           std::string(error.what()) + ")");
  }
}

Program::Program(const std::string &text) : text(text), source(read(text)) {}

Program::~Program() {
  for (auto &[wish, kernel] : kernels)
    attn_kernel_free(kernel);
}

attn_kernel *Program::compile(const Wish &wish) const {
  attn_options *options;
  check(attn_options_create(&options));
  std::unique_ptr<attn_options, void (*)(attn_options *)> owner(options, attn_options_free);
  auto set = [&](std::string name, const std::string &value) {
    std::replace(name.begin(), name.end(), '_', '-');
    check(attn_options_set(options, name.c_str(), value.c_str()));
  };
  // Calls compile the kernels that they take, unless the source says otherwise.
  set("lazy", "on");
  for (const auto &[name, value] : source.options)
    set(name, value);
  set("device", wish.device < 0 ? "cpu" : "cuda:" + std::to_string(wish.device));
  if (wish.isInOrder)
    set("fused", "off");
  std::string function =
      wish.gradients ? source.writeGradient(*wish.gradients) : source.writeForward(wish.hasLow);
  attn_kernel *kernel;
  check(attn_compile(function.c_str(), options, &kernel));
  return kernel;
}

const attn_kernel *Program::find(const Wish &wish) {
  auto known = [&]() -> const attn_kernel * {
    for (const auto &[of, kernel] : kernels)
      if (of == wish)
        return kernel;
    return nullptr;
  };
  {
    std::shared_lock lock(mutex);
    if (const attn_kernel *kernel = known())
      return kernel;
  }
  // Not while the lock is held: compiling may call a log that waits for Python. The library gives
  // threads that compile the same the same code.
  attn_kernel *kernel = compile(wish);
  std::unique_lock lock(mutex);
  if (const attn_kernel *other = known()) {
    attn_kernel_free(kernel);
    return other;
  }
  kernels.emplace_back(wish, kernel);
  return kernel;
}

namespace {
struct Programs {
  std::shared_mutex mutex;
  std::map<std::string, std::shared_ptr<Program>, std::less<>> all;
  /// Their keys, the first one in front.
  std::deque<std::string> order;
};
} // namespace

/// Never destroyed: threads may call until the process ends.
static Programs &programs() {
  static auto &programs = *new Programs;
  return programs;
}

static constexpr size_t kMostPrograms = 512;

std::shared_ptr<Program> attn_torch::findProgram(const std::string &text) {
  // Models call one attention many times in a row.
  thread_local std::shared_ptr<Program> last;
  if (last && last->text == text)
    return last;
  Programs &known = programs();
  {
    std::shared_lock lock(known.mutex);
    if (auto found = known.all.find(text); found != known.all.end())
      return last = found->second;
  }
  auto program = std::make_shared<Program>(text);
  std::unique_lock lock(known.mutex);
  auto [place, isNew] = known.all.try_emplace(text, program);
  last = place->second;
  if (!isNew)
    return last;
  known.order.push_back(text);
  // Calls that run one of them hold it themselves.
  if (known.order.size() > kMostPrograms) {
    known.all.erase(known.order.front());
    known.order.pop_front();
  }
  return last;
}

size_t attn_torch::countPrograms() {
  std::shared_lock lock(programs().mutex);
  return programs().all.size();
}
