//===- Options.cpp - the command line of attn-run ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Options.h"
#include "lib/Machine/Machine.h"
#include "lib/Registration/CommandLine.h"
#include "lib/Target/CPU/HostInfo.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "lib/Transforms/Attn/WayRules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace attn {

namespace {
/// Made by the first parse and kept: LLVM holds pointers to options for as long as it runs.
struct CommandLine {
  cl::OptionCategory category{"attn-run options"};
  cl::opt<std::string> file{cl::Positional, cl::desc("FILE.mlir"), cl::cat(category)};
  cl::opt<std::string> device{"device", cl::desc("where to run: cpu, cuda, sim or interpreter"),
                              cl::value_desc("name"), cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> entry{"entry", cl::desc("the function to run, if the file has several"),
                             cl::value_desc("name"), cl::cat(category)};
  cl::list<std::string> shape{
      "shape",
      cl::desc("extents by letter (B batch, H query heads, Hkv key/value heads, M query rows,\n"
               "N key rows) or by tensor and dimension (name.0=8); Hkv defaults to H, N to M"),
      cl::value_desc("B=1,H=8,..."), cl::cat(category)};
  cl::list<std::string> input{
      "input",
      cl::desc("an argument's value: a .npy file, a number, LOW..HIGH (random integers), sorted\n"
               "(document ids), zeros or normal; arguments not named are random"),
      cl::value_desc("name=value"), cl::cat(category)};
  cl::list<std::string> output{"output", cl::desc("write a result to a .npy file"),
                               cl::value_desc("name=path"), cl::cat(category)};
  cl::opt<std::string> layout{"layout",
                              cl::desc("order in memory of tensors of rank 4: bhsd or bshd"),
                              cl::value_desc("order"), cl::init("bhsd"), cl::cat(category)};
  cl::opt<std::string> seed{"seed", cl::desc("seed of the random inputs"), cl::value_desc("n"),
                            cl::init("0"), cl::cat(category)};
  cl::opt<bool> check{"check", cl::desc("compare with the definition, evaluated in f64"),
                      cl::cat(category)};
  cl::opt<std::string> tolerance{
      "tolerance",
      cl::desc("largest relative error that --check accepts; by default it follows\n"
               "from the types: f32 2e-5, f16 1.2e-3 (cuda, sim: 4.8e-3), bf16 3.8e-2"),
      cl::value_desc("x"), cl::cat(category)};
  cl::opt<bool> bench{"bench", cl::desc("measure the time of repeated runs"), cl::cat(category)};
  cl::opt<bool> tune{
      "tune",
      cl::desc("with --device=cpu or cuda: try tiles of all sizes first, on a GPU the\n"
               "fastest with blocks that stay too, and run with the fastest"),
      cl::cat(category)};
  cl::opt<std::string> benchMs{"bench-ms", cl::desc("measure for at least so many milliseconds"),
                               cl::value_desc("ms"), cl::init("500"), cl::cat(category)};
  cl::opt<std::string> flops{
      "flops",
      cl::desc("pairs (m, n) that count as work: kept (those that the mask keeps, where no tensor\n"
               "decides), full, causal (n <= m) or causal-bottom-right (n <= m + N - M)"),
      cl::value_desc("what"), cl::init("kept"), cl::cat(category)};
  cl::opt<std::string> until{
      "until",
      cl::desc("with --device=interpreter: the door to run at, problem, grid or online; or\n"
               "source, for a file that is to run as it is"),
      cl::value_desc("door"), cl::init("online"), cl::cat(category)};
  cl::opt<bool> grad{"grad",
                     cl::desc("compute the gradients too: of queries, keys, values, sinks and\n"
                              "tensors that scores read, from those of the results"),
                     cl::cat(category)};
  cl::opt<bool> count{"count",
                      cl::desc("with --device=interpreter: count the key tiles visited and prove\n"
                               "them against the masks of the source, without numbers"),
                      cl::cat(category)};
  cl::opt<std::string> simSeeds{"sim-seeds",
                                cl::desc("with --device=sim: seeds of random times to run with"),
                                cl::value_desc("n"), cl::init("8"), cl::cat(category)};
  cl::opt<bool> predict{"predict",
                        cl::desc("with --device=sim: predict the time on a chip of the target, "
                                 "without numbers"),
                        cl::cat(category)};
  cl::list<std::string> timeline{"timeline",
                                 cl::desc("with --device=sim: write the schedule of a block, as a\n"
                                          "trace (.json, for Perfetto) or a picture (.svg)"),
                                 cl::value_desc("path"), cl::cat(category)};
  cl::opt<std::string> blockM{"block-m",
                              cl::desc("query rows of a block (default: the target's rule)"),
                              cl::value_desc("n"), cl::init("0"), cl::cat(category)};
  cl::opt<std::string> blockN{"block-n", cl::desc("keys of a step (default: the target's rule)"),
                              cl::value_desc("n"), cl::init("0"), cl::cat(category)};
  cl::opt<std::string> stages{"stages",
                              cl::desc("with --device=sim: tiles of keys in flight at once"),
                              cl::value_desc("n"), cl::init("0"), cl::cat(category)};
  cl::opt<std::string> stay{
      "stay",
      cl::desc("with --device=cuda or sim: whether blocks stay (default: auto,\n"
               "the target's rule)"),
      cl::value_desc("true|false"), cl::init("auto"), cl::cat(category)};
  cl::opt<bool> balance{
      "balance",
      cl::desc("with --device=cuda or sim: sequences get parts of their keys by their\n"
               "lengths, where calls with few rows split keys (default: false)"),
      cl::cat(category)};
  cl::opt<std::string> slack{
      "slack",
      cl::desc("with --device=cuda or sim: by which factor 2^slack, 0 to 16, maxima of\n"
               "rows may lag before sums are scaled (default: they are exact)"),
      cl::value_desc("n"), cl::init(""), cl::cat(category)};
  /// The parser keeps no copy.
  std::string targetHelp =
      "with --device=cuda or sim: the kind of GPU, " + listMachines() + "\n(default: the device's)";
  cl::opt<std::string> target{"target", cl::desc(targetHelp), cl::value_desc("name"),
                              cl::cat(category)};
  cl::opt<std::string> way{
      "way",
      cl::desc("with --device=cuda or sim: the kernel for which calls (default: auto,\n"
               "the one that the target's rule has for this call)"),
      cl::value_desc("lengths|short|long|few|narrow|groups"), cl::init("auto"), cl::cat(category)};
  cl::opt<bool> fused{
      "fused",
      cl::desc("with --device=cuda or sim: blocks of keys add to the gradients of\n"
               "queries, in any order, where there are such blocks (default: true)"),
      cl::init(true), cl::cat(category)};
  cl::opt<std::string> splits{"splits",
                              cl::desc("parts the keys of a block are split into (default: 1)"),
                              cl::value_desc("n"), cl::init("1"), cl::cat(category)};
  cl::opt<std::string> fixedSplit{
      "fixed-split",
      cl::desc("keys of a part, counted from the first key, so that bits do not\n"
               "depend on the batch (default: 0, none)"),
      cl::value_desc("n"), cl::init("0"), cl::cat(category)};
  cl::opt<std::string> threads{"threads", cl::desc("threads to use (default: physical cores)"),
                               cl::value_desc("n"), cl::cat(category)};
  cl::opt<std::string> cpu{"cpu", cl::desc("compile for this CPU, e.g. x86-64-v3"),
                           cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> opt{"opt", cl::desc("LLVM's effort: none, lean, o2 or o3"),
                           cl::value_desc("level"), cl::init("lean"), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("print the report as JSON"), cl::cat(category)};
  cl::opt<bool> progress{"progress", cl::desc("show progress on stderr even if it is no terminal"),
                         cl::cat(category)};
  cl::opt<std::string> dumpAsm{"dump-asm", cl::desc("write the assembly"), cl::value_desc("path"),
                               cl::cat(category)};
  cl::opt<std::string> dumpLLVM{"dump-llvm", cl::desc("write the optimised LLVM IR"),
                                cl::value_desc("path"), cl::cat(category)};
  cl::opt<std::string> dumpObject{"dump-object", cl::desc("write the object file"),
                                  cl::value_desc("path"), cl::cat(category)};
};
} // namespace

Error parseShape(StringRef text, StringMap<int64_t> &shape) {
  static constexpr StringLiteral letters[] = {"B",  "H",  "Hkv", "M", "N", "D",
                                              "Dv", "Np", "P",   "C", "T"};
  SmallVector<StringRef> entries;
  text.split(entries, ',', -1, /*KeepEmpty=*/false);
  for (StringRef entry : entries) {
    auto [name, value] = entry.trim().split('=');
    if (!is_contained(letters, name) && !name.contains('.'))
      return createStringError("--shape: expected one of " + join(ArrayRef(letters), ", ") +
                               " or tensor.dimension, got '" + name + "'");
    int64_t extent = 0;
    if (value.getAsInteger(10, extent) || extent < 0)
      return createStringError("--shape: expected an extent of 0 to 2^63 - 1 for " + name +
                               ", got '" + value + "'");
    auto [entryIt, isNew] = shape.try_emplace(name, extent);
    if (!isNew && entryIt->second != extent)
      return createStringError("--shape: expected one value for " + name + ", got " +
                               Twine(entryIt->second) + " and " + Twine(extent));
  }
  return Error::success();
}

static Error parsePairs(StringRef option, ArrayRef<std::string> texts,
                        StringMap<std::string> &pairs) {
  for (StringRef text : texts) {
    auto [name, value] = text.split('=');
    if (name.empty() || value.empty())
      return createStringError("--" + option + ": expected name=value, got '" + text + "'");
    if (!pairs.try_emplace(name.ltrim('%'), value.str()).second)
      return createStringError("--" + option + ": expected '" + name + "' once, got it twice");
  }
  return Error::success();
}

template <typename T>
static Error parseNumber(StringRef option, StringRef text, T low, T high, T &value) {
  bool failed = false;
  if constexpr (std::is_floating_point_v<T>)
    failed = text.getAsDouble(value);
  else
    failed = text.getAsInteger(0, value);
  if (!failed && value >= low && value <= high) // False for NaN.
    return Error::success();
  std::string range;
  raw_string_ostream(range) << low << " to " << high;
  return createStringError("--" + option + ": expected a number from " + range + ", got '" + text +
                           "'");
}

template <typename T>
static Error parseChoice(StringRef option, StringRef text,
                         ArrayRef<std::pair<StringLiteral, T>> choices, T &value) {
  for (const auto &[name, choice] : choices)
    if (text == name) {
      value = choice;
      return Error::success();
    }
  std::string names = join(map_range(choices, [](auto &choice) { return choice.first; }), ", ");
  return createStringError("--" + option + ": expected one of " + names + ", got '" + text + "'");
}

static Error convertInterpreterOptions(const CommandLine &line, RunOptions &options) {
  options.count = line.count;
  SmallVector<std::pair<StringLiteral, std::optional<Room>>> doors{{"source", std::nullopt}};
  for (const RoomInfo &info : getRooms())
    if (info.room <= Room::Online)
      doors.push_back({info.name, info.room});
  if (Error error = parseChoice<std::optional<Room>>("until", line.until, doors, options.until))
    return error;
  bool isInterpreter = options.device == Device::Interpreter;
  for (auto [option, isGiven] :
       {std::pair("until", line.until.getNumOccurrences() > 0), {"count", options.count}})
    if (isGiven && !isInterpreter)
      return createStringError(Twine("--") + option +
                               ": expected --device=interpreter, got --device=" + line.device);
  for (auto [option, isGiven] : {std::pair("bench", options.bench),
                                 {"dump-asm", !line.dumpAsm.empty()},
                                 {"dump-llvm", !line.dumpLLVM.empty()},
                                 {"dump-object", !line.dumpObject.empty()},
                                 {"block-m", line.blockM.getNumOccurrences() > 0},
                                 {"block-n", line.blockN.getNumOccurrences() > 0}})
    if (isGiven && isInterpreter)
      return createStringError(Twine("--") + option +
                               ": expected --device=cpu, got --device=interpreter");
  if (line.tune && (isInterpreter || options.device == Device::Simulator))
    return createStringError("--tune: expected --device=cpu or cuda, got --device=" + line.device);
  for (const cl::opt<std::string> *option : {&line.splits, &line.fixedSplit})
    if (isInterpreter && option->getNumOccurrences() > 0)
      return createStringError("--" + option->ArgStr +
                               ": expected --device=cpu, cuda or sim, got "
                               "--device=interpreter");
  if (options.count && options.until && *options.until != Room::Online)
    return createStringError("--count: expected --until=online or source, for there are no tiles "
                             "before, got --until=" +
                             line.until);
  if (options.count && (options.check || !line.output.empty()))
    return createStringError("--count: expected neither --check nor --output, for there are no "
                             "numbers, got " +
                             Twine(options.check ? "--check" : "--output"));
  return Error::success();
}

/// A number of the schedule. `rule` leaves it to the target's rule.
static Error sayNumber(StringRef option, StringRef text, int64_t low, int64_t high, int64_t rule,
                       int64_t Schedule::*field, RunOptions &options) {
  int64_t value = rule;
  if (Error error = parseNumber<int64_t>(option, text, low, high, value))
    return error;
  if (value != rule)
    options.schedule.set(field, value);
  return Error::success();
}

static Error convertSchedule(const CommandLine &line, RunOptions &options) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  options.target = line.target;
  const Machine *machine =
      options.target.empty() ? &getDefaultMachine() : findMachine(options.target);
  if (!machine)
    return createStringError("--target: expected " + listMachines() + ", got '" + options.target +
                             "'");
  for (auto &[option, text, low, high, rule, field] :
       {std::tuple("block-m", &line.blockM, 0, 1024, int64_t(0), &Schedule::blockM),
        std::tuple("block-n", &line.blockN, 0, 1024, int64_t(0), &Schedule::blockN),
        std::tuple("stages", &line.stages, 0, 64, int64_t(0), &Schedule::stages),
        std::tuple("splits", &line.splits, 1, 1 << 20, int64_t(1), &Schedule::splits),
        std::tuple("fixed-split", &line.fixedSplit, 0, 1 << 20, int64_t(0), &Schedule::fixedSplit),
        std::tuple("slack", &line.slack, 0, 16, kNone, &Schedule::slack)})
    if (!text->empty())
      if (Error error = sayNumber(option, *text, low, high, rule, field, options))
        return error;
  for (auto [option, field, multiple] :
       {std::tuple("block-m", &Schedule::blockM, machine->getWarpgroupRows()),
        {"block-n", &Schedule::blockN, machine->product.columnStep}})
    if (int64_t value = options.schedule.get(field).value_or(0);
        options.device != Device::CPU && value % multiple != 0)
      return createStringError(Twine("--") + option + ": expected a multiple of " +
                               Twine(multiple) + ", got " + Twine(value));
  if (!is_contained({"true", "false", "auto"}, line.stay))
    return createStringError("--stay: expected true, false or auto, got '" + line.stay + "'");
  if (line.stay != "auto")
    options.schedule.setStay(line.stay == "true");
  if (line.balance)
    options.schedule.set(&Schedule::balance, true);
  options.fused = line.fused;
  options.way = line.way;
  if (!is_contained(kWays, options.way))
    return createStringError(
        "--way: expected auto, lengths, short, long, few, narrow or groups, got '" + options.way +
        "'");
  return Error::success();
}

static Error convertSimulatorOptions(const CommandLine &line, RunOptions &options) {
  bool isSimulator = options.device == Device::Simulator;
  for (auto [option, isGiven] : {std::pair("sim-seeds", line.simSeeds.getNumOccurrences() > 0),
                                 {"predict", bool(line.predict)},
                                 {"timeline", !line.timeline.empty()},
                                 {"stages", line.stages.getNumOccurrences() > 0}})
    if (isGiven && !isSimulator)
      return createStringError(Twine("--") + option +
                               ": expected --device=sim, got --device=" + line.device);
  for (auto [option, isGiven] : {std::pair("stay", line.stay.getNumOccurrences() > 0),
                                 {"balance", line.balance.getNumOccurrences() > 0},
                                 {"slack", line.slack.getNumOccurrences() > 0},
                                 {"target", line.target.getNumOccurrences() > 0},
                                 {"way", line.way.getNumOccurrences() > 0}})
    if (isGiven && !isSimulator && options.device != Device::CUDA)
      return createStringError(Twine("--") + option +
                               ": expected --device=cuda or sim, got --device=" + line.device);
  for (auto [option, isGiven] : {std::pair("bench", options.bench),
                                 {"dump-asm", !line.dumpAsm.empty()},
                                 {"dump-llvm", !line.dumpLLVM.empty()},
                                 {"dump-object", !line.dumpObject.empty()}})
    if (isGiven && isSimulator)
      return createStringError(Twine("--") + option + ": expected --device=cpu, got --device=sim");
  if (line.predict && (options.check || !line.output.empty()))
    return createStringError("--predict: expected neither --check nor --output, for there are no "
                             "numbers, got " +
                             Twine(options.check ? "--check" : "--output"));
  for (StringRef path : line.timeline)
    if (!path.ends_with(".json") && !path.ends_with(".svg"))
      return createStringError("--timeline: expected a path ending in .json or .svg, got '" + path +
                               "'");
  options.predict = line.predict;
  options.timelines.assign(line.timeline.begin(), line.timeline.end());
  // Without numbers, floats need no data.
  if (isSimulator && options.predict)
    options.count = true;
  if (Error error = parseNumber<unsigned>("sim-seeds", line.simSeeds, 1, 1000000, options.simSeeds))
    return error;
  return convertSchedule(line, options);
}

static Error convertJitOptions(const CommandLine &line, JitOptions &jit) {
  if (Error error = parseChoice<OptLevel>("opt", line.opt,
                                          {{"none", OptLevel::None},
                                           {"lean", OptLevel::Lean},
                                           {"o2", OptLevel::O2},
                                           {"o3", OptLevel::O3}},
                                          jit.optLevel))
    return error;
  HostOverride overrides;
  if (!line.threads.empty())
    if (Error error =
            parseNumber<unsigned>("threads", line.threads, 1, 4096, overrides.numThreads.emplace()))
      return error;
  if (!line.cpu.empty())
    overrides.cpu = line.cpu;
  Expected<HostInfo> host = getHostInfo(overrides);
  if (!host)
    return host.takeError();
  jit.host = std::move(*host);
  jit.dumpAssembly = line.dumpAsm;
  jit.dumpLLVM = line.dumpLLVM;
  jit.dumpObject = line.dumpObject;
  return Error::success();
}

static Error convert(const CommandLine &line, RunOptions &options) {
  if (line.file.empty())
    return createStringError("expected a file FILE.mlir, got none (--help shows the options)");
  options.file = line.file;
  options.entry = StringRef(line.entry).ltrim('@').str();
  options.withGradients = line.grad;
  options.check = line.check;
  options.bench = line.bench;
  options.tune = line.tune;
  options.json = line.json;
  options.showProgress = line.progress || sys::Process::StandardErrIsDisplayed();
  if (Error error = parseChoice<Device>("device", line.device,
                                        {{"cpu", Device::CPU},
                                         {"cuda", Device::CUDA},
                                         {"sim", Device::Simulator},
                                         {"interpreter", Device::Interpreter}},
                                        options.device))
    return error;
  if (Error error = convertInterpreterOptions(line, options))
    return error;
  if (Error error = convertSimulatorOptions(line, options))
    return error;

  for (StringRef text : line.shape)
    if (Error error = parseShape(text, options.shape))
      return error;
  if (Error error = parsePairs("input", line.input, options.inputs))
    return error;
  if (Error error = parsePairs("output", line.output, options.outputs))
    return error;
  if (Error error = parseChoice<bool>("layout", line.layout, {{"bhsd", false}, {"bshd", true}},
                                      options.isRowsFirst))
    return error;
  if (Error error = parseChoice<FlopCount>("flops", line.flops,
                                           {{"kept", FlopCount::Kept},
                                            {"full", FlopCount::Full},
                                            {"causal", FlopCount::CausalTopLeft},
                                            {"causal-bottom-right", FlopCount::CausalBottomRight}},
                                           options.flops))
    return error;
  if (Error error = parseNumber<uint64_t>("seed", line.seed, 0, ~uint64_t(0), options.seed))
    return error;
  if (Error error = parseNumber<double>("bench-ms", line.benchMs, 0, 1e9, options.benchMs))
    return error;
  if (!line.tolerance.empty())
    if (Error error =
            parseNumber<double>("tolerance", line.tolerance, 0, 1e300, options.tolerance.emplace()))
      return error;

  return convertJitOptions(line, options.jit);
}

Expected<std::optional<RunOptions>> parseCommandLine(int argc, const char *const *argv) {
  // LLVM's libraries bring hundreds of options of their own, some with our names; they are not this
  // tool's.
  cl::ResetCommandLineParser();
  static CommandLine &line = *new CommandLine;
  constexpr StringLiteral overview =
      "compiles attention, runs it on this machine, checks and times it\n";
  // Answered here: LLVM ends the process after printing, past everyone's destructors.
  for (StringRef argument : ArrayRef(argv, argc).drop_front(argc > 0)) {
    if (argument == "--version") {
      printVersion(outs(), "attn-run");
      return std::optional<RunOptions>();
    }
    if (argument == "--help" || argument == "-help" || argument == "-h") {
      // Help is about the program and options of the last parse, so there must have been one.
      cl::ParseCommandLineOptions(1, argv, overview, &nulls());
      cl::PrintHelpMessage(/*Hidden=*/false, /*Categorized=*/false);
      return std::optional<RunOptions>();
    }
  }
  std::string complaint;
  raw_string_ostream stream(complaint);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &stream))
    return createStringError(describeComplaint("attn-run", complaint));
  RunOptions options;
  if (Error error = convert(line, options))
    return std::move(error);
  return std::optional<RunOptions>(std::move(options));
}

} // namespace attn
