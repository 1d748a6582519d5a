//===- AttnTranslate.cpp - the body of attn-translate ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/AttnTranslate/AttnTranslate.h"
#include "attn/Bundle.h"
#include "attn/Compiler.h"
#include "dialects/Attn/IR/AttnVariantForms.h"
#include "lib/Compiler/Function.h"
#include "lib/Compiler/Ship.h"
#include "lib/Machine/Machine.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Plan/Plan.h"
#include "lib/Registration/CommandLine.h"
#include "lib/Rooms/Rooms.h"
#include "lib/Target/CPU/HostInfo.h"
#include "lib/Target/CPU/ObjectCompiler.h"
#include "lib/Target/PTX/EmitPTX.h"
#include "lib/Tools/AttnTranslate/Pictures.h"
#include "lib/Tools/AttnTranslate/Stages.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

namespace {
enum class TargetKind { Automatic, CPU, CUDA };

struct CommandLine {
  cl::OptionCategory category{"attn-translate options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("FILE.mlir"), cl::init("-"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("where to write (default: standard output)"),
                              cl::value_desc("path"), cl::init("-"), cl::cat(category)};
  cl::opt<Room> until{"until", cl::desc("the door to stop at (default: online)"),
                      cl::init(Room::Online), cl::cat(category)};
  /// The parser keeps no copy.
  std::string targetHelp = "what to compile for: cpu, cuda, or a kind of GPU, " + listMachines() +
                           "\n(default: the device of the door, else cpu); with PTX also\n"
                           "several kinds with commas between, as a bundle";
  cl::opt<std::string> targetName{"target", cl::desc(targetHelp), cl::value_desc("name"),
                                  cl::cat(category)};
  cl::opt<bool> html{"html",
                     cl::desc("one page for a browser, with the program at every door up to "
                              "--until (default: the last one of --target)"),
                     cl::cat(category)};
  cl::opt<std::string> shape{
      "shape",
      cl::desc("with --html: the call whose mask and timeline the page shows, as attn-run\n"
               "takes it, or none (default: B=4,H=16,M=2048, or what the types say)"),
      cl::value_desc("B=1,H=8,.."), cl::cat(category)};
  cl::opt<std::string> maskTiles{
      "mask-tiles",
      cl::desc("with --html: tiles as counted elsewhere (JSON), for a mask that reads tensors\n"
               "of a call"),
      cl::value_desc("path"), cl::cat(category)};
  cl::opt<bool> list{"list",
                     cl::desc("what there is: doors of --until, targets of --target, and variants"),
                     cl::cat(category)};
  cl::opt<bool> toPTX{"to-ptx", cl::desc("the same as --target=cuda --until=ptx"),
                      cl::cat(category)};
  cl::opt<std::string> plan{"plan", cl::desc("with PTX: where to write how to launch it (JSON)"),
                            cl::value_desc("path"), cl::cat(category)};
  cl::opt<std::string> ship{
      "ship",
      cl::desc("with PTX: a folder for entries of the cache on disk, with machine code by\n"
               "the ptxas of $PATH, for a library of this build (default: none)"),
      cl::value_desc("path"), cl::cat(category)};
  cl::list<std::string> shipWays{
      "ship-ways", cl::CommaSeparated,
      cl::desc("with --ship: which ways, besides the one for all calls (default: none)"),
      cl::value_desc("names"), cl::cat(category)};
  cl::opt<std::string> entry{"entry",
                             cl::desc("with PTX: the function to compile, when there are several"),
                             cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> cpu{
      "cpu", cl::desc("compile for this CPU, e.g. x86-64-v3 (default: this machine's)"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<int64_t> blockM{"block-m", cl::desc("query rows of a block (default: the target's rule)"),
                          cl::init(0), cl::cat(category)};
  cl::opt<int64_t> blockN{"block-n", cl::desc("keys of a step (default: the target's rule)"),
                          cl::init(0), cl::cat(category)};
  cl::opt<int64_t> splits{"splits",
                          cl::desc("parts the keys of a block are split into (default: 1)"),
                          cl::init(1), cl::cat(category)};
  cl::opt<int64_t> fixedSplit{
      "fixed-split",
      cl::desc("keys of a part, counted from the first key, so that bits do not\n"
               "depend on the batch (default: 0, none)"),
      cl::init(0), cl::cat(category)};
  cl::opt<std::string> way{
      "way",
      cl::desc("kernels of a GPU between which calls choose: auto (all of the\n"
               "target's rule), lengths (for short and for other sequences;\n"
               "default), or one for all calls: short, long, few (rows with many\n"
               "keys), narrow (many rows with few keys) or groups (gradients of\n"
               "few keys that many query heads share)"),
      cl::init("lengths"), cl::cat(category)};
  cl::opt<std::string> stay{
      "stay", cl::desc("cuda: whether blocks stay (default: auto, the target's rule)"),
      cl::value_desc("true|false"), cl::init("auto"), cl::cat(category)};
  cl::opt<int64_t> reserve{"reserve",
                           cl::desc("cuda: multiprocessors that blocks that stay leave to other\n"
                                    "kernels (default: 0)"),
                           cl::init(0), cl::cat(category)};
  cl::opt<bool> balance{"balance",
                        cl::desc("cuda: sequences get parts of their keys by their lengths, where\n"
                                 "calls with few rows split keys (default: false)"),
                        cl::cat(category)};
  cl::opt<int64_t> slack{"slack",
                         cl::desc("cuda: by which factor 2^slack, 0 to 16, maxima of rows may lag\n"
                                  "before sums are scaled (default: -1, they are exact)"),
                         cl::init(-1), cl::cat(category)};
  cl::opt<bool> fused{"fused",
                      cl::desc("cuda: blocks of keys add to the gradients of queries, in any "
                               "order, where there are such blocks (default: true)"),
                      cl::init(true), cl::cat(category)};
  /// The help texts of the options of `until`; the parser keeps no copy.
  std::vector<std::string> helps;

  /// What `targetName` means, and the machine if it names one; or all of several.
  TargetKind target = TargetKind::Automatic;
  std::string machine;
  SmallVector<std::string> bundle;

  CommandLine() {
    for (const RoomInfo &info : getRooms())
      helps.push_back(llvm::formatv("room {0}{1}: {2}", info.number, getDeviceHelp(info.device),
                                    info.sentence));
    for (auto [info, help] : llvm::zip_equal(getRooms(), helps))
      until.getParser().addLiteralOption(info.name, info.room, help);
  }

  static StringRef getDeviceHelp(RoomDevice device) {
    return device == RoomDevice::Both ? "" : device == RoomDevice::CUDA ? ", cuda" : ", cpu";
  }
};
} // namespace

static int fail(llvm::Error error) {
  llvm::errs() << "attn-translate: " << llvm::toString(std::move(error)) << "\n";
  return 1;
}

/// Columns for people and for programs that complete names: two spaces, the name, the rest.
static void printList(llvm::raw_ostream &os) {
  auto print = [&](const llvm::Twine &name, const llvm::Twine &sentence) {
    os << llvm::formatv("  {0,-20} {1}\n", name.str(), sentence.str());
  };
  os << "doors (--until)\n";
  for (const RoomInfo &info : getRooms())
    print(info.name, llvm::formatv("room {0}{1}: {2}", info.number,
                                   CommandLine::getDeviceHelp(info.device), info.sentence)
                         .str());
  os << "targets (--target)\n";
  print("cpu", "this processor, or that of --cpu");
  print("cuda", llvm::Twine("the same as ") + getMachines().front()->name);
  for (const Machine *machine : getMachines()) {
    std::string chips;
    for (const Chip &chip : machine->chips)
      chips += (chips.empty() ? "" : ", ") + chip.name.str();
    print(machine->name, chips);
  }
  os << "variants (of attn.attention)\n";
  for (const VariantForm &form : getVariantForms())
    print(llvm::Twine("#attn.") + form.name, form.getText() + ": " + form.sentence);
}

/// The text of the module compiled as far as LLVM IR or assembly.
static llvm::Expected<std::string> printCompiled(ModuleOp module, const HostInfo &host,
                                                 bool isAssembly) {
  llvm::SmallString<128> path;
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("attn-translate", isAssembly ? "s" : "ll", path))
    return llvm::createStringError(code, "expected to write a temporary file, got %s",
                                   code.message().c_str());
  llvm::FileRemover remover(path);
  JitOptions options;
  options.host = host;
  (isAssembly ? options.dumpAssembly : options.dumpLLVM) = path.str().str();
  JitTimings timings;
  if (auto object = compileObject(module, options, timings); !object)
    return object.takeError();
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return llvm::errorCodeToError(text.getError());
  return (*text)->getBuffer().str();
}

/// The options that programs would give.
static CompileOptions getCompileOptions(const CommandLine &line) {
  CompileOptions options;
  options.device = DeviceKind::CUDA;
  options.target = line.machine;
  options.entry = line.entry;
  options.blockM = line.blockM;
  options.blockN = line.blockN;
  options.splits = line.splits;
  options.fixedSplit = line.fixedSplit;
  options.fused = line.fused;
  options.way = line.way;
  std::string stay = line.stay;
  options.stay = stay == "true" ? "on" : stay == "false" ? "off" : stay;
  options.reserve = line.reserve;
  options.balance = line.balance;
  options.slack = line.slack;
  return options;
}

static llvm::Error readTarget(CommandLine &line) {
  StringRef name = line.targetName;
  if (name.empty())
    return llvm::Error::success();
  line.target = name == "cpu" ? TargetKind::CPU : TargetKind::CUDA;
  if (name == "cpu" || name == "cuda")
    return llvm::Error::success();
  SmallVector<StringRef> machines;
  name.split(machines, ',');
  for (StringRef machine : machines)
    if (!findMachine(machine))
      return llvm::createStringError("expected --target=cpu, cuda or " + listMachines() +
                                     ", got '" + machine + "'");
  line.machine = machines.front().str();
  if (machines.size() > 1)
    llvm::append_range(line.bundle, machines);
  return llvm::Error::success();
}

/// Options that contradict each other are errors; what is left open is filled in.
static llvm::Error resolve(CommandLine &line) {
  if (llvm::Error error = readTarget(line))
    return error;
  if (line.toPTX) {
    if (line.until.getNumOccurrences() && line.until != Room::PTX)
      return llvm::createStringError("expected --to-ptx or --until, got both");
    line.until = Room::PTX;
  }
  if (line.html && !line.until.getNumOccurrences() && !line.toPTX)
    line.until = line.target == TargetKind::CUDA ? Room::PTX : Room::Assembly;
  RoomDevice device = getInfo(line.until).device;
  if (line.target == TargetKind::Automatic)
    line.target = device == RoomDevice::CUDA ? TargetKind::CUDA : TargetKind::CPU;
  if (device == RoomDevice::CUDA && line.target == TargetKind::CPU)
    return llvm::createStringError(
        "expected a door on the way to the CPU, got one of --target=cuda");
  if (device == RoomDevice::CPU && line.target == TargetKind::CUDA)
    return llvm::createStringError(
        "expected a door on the way to the GPU, got one of --target=cpu");
  if (Status status = checkOptions(getCompileOptions(line)); !status.ok())
    return llvm::createStringError(status.str());
  if (line.until != Room::PTX && (!line.plan.empty() || !line.entry.empty()))
    return llvm::createStringError("expected --to-ptx with --plan and --entry, got another door");
  if (!line.html && (line.shape.getNumOccurrences() || !line.maskTiles.empty()))
    return llvm::createStringError("expected --html with --shape and --mask-tiles, got another "
                                   "form");
  if (line.ship.empty() && !line.shipWays.empty())
    return llvm::createStringError("expected --ship with --ship-ways, got none");
  if (!line.ship.empty() && (line.until != Room::PTX || line.html || !line.bundle.empty()))
    return llvm::createStringError("expected --to-ptx for one target with --ship, got another door "
                                   "or several targets");
  if (!line.bundle.empty() && (line.until != Room::PTX || line.html || !line.plan.empty()))
    return llvm::createStringError("expected --to-ptx alone with several targets, whose bundle has "
                                   "the plans too");
  return llvm::Error::success();
}

static llvm::Error write(StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  std::error_code code;
  llvm::ToolOutputFile out(path, code, llvm::sys::fs::OF_Text);
  if (code)
    return llvm::createStringError("expected to write '" + path + "', got " + code.message());
  print(out.os());
  out.keep();
  return llvm::Error::success();
}

/// The room after another one on the way to a device.
static Room getNext(Room room, RoomDevice device) {
  const RoomInfo *next = llvm::find_if(getRooms(), [&](const RoomInfo &info) {
    return info.room > room && info.isOnTheWayTo(device);
  });
  return next == getRooms().end() ? room : next->room;
}

/// The room of the program, where the way to `until` leads through it.
static llvm::Expected<Room> findStart(const CommandLine &line, ModuleOp module) {
  std::optional<Room> start = findRoom(module);
  RoomDevice device = line.target == TargetKind::CUDA ? RoomDevice::CUDA : RoomDevice::CPU;
  if (!start)
    return llvm::createStringError("expected a program of one room, got ops of several");
  // Rooms of a device end in text, and their numbers grow on the way.
  if (!getInfo(*start).isOnTheWayTo(device) || getInfo(line.until).number < getInfo(*start).number)
    return llvm::createStringError("expected a door of " + describe(*start) + " or after it, got " +
                                   describe(line.until));
  if (*start == Room::Problem)
    return *start;
  if (!line.bundle.empty())
    return llvm::createStringError("expected one target with a program of " + describe(*start) +
                                   ", which is for one machine, got " + line.targetName);
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &line.blockM, &line.blockN, &line.splits, &line.fixedSplit, &line.way, &line.stay,
           &line.reserve, &line.slack, &line.fused, &line.entry})
    if (option->getNumOccurrences())
      return llvm::createStringError("expected --" + option->ArgStr + " with a program of " +
                                     describe(Room::Problem) + ", got one of " + describe(*start));
  return *start;
}

/// Room 8 of a program that somebody has stopped on the way. Empty after diagnostics.
static llvm::Expected<std::optional<std::string>> resumeToPTX(const CommandLine &line,
                                                              ModuleOp module, Room start) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager pm(module.getContext());
  PipelineOptions options;
  options.target = "cuda";
  if (start < Room::Thread)
    buildPipeline(pm, options, getNext(start, RoomDevice::CUDA), Room::Thread);
  if (failed(pm.run(*copy)))
    return std::nullopt;
  llvm::Expected<std::vector<KernelPlan>> plans = getKernelPlans(*copy);
  if (!plans)
    return plans.takeError();
  std::string plan = writePlan({std::move(*plans), {}});
  llvm::Expected<std::string> ptx = emitPTX(*copy);
  if (!ptx)
    return ptx.takeError();
  if (!line.plan.empty())
    if (llvm::Error error = write(line.plan, [&](llvm::raw_ostream &os) { os << plan; }))
      return std::move(error);
  return std::move(*ptx);
}

/// Room 8 for each of several machines.
static llvm::Expected<std::string> printBundle(const CommandLine &line, StringRef source) {
  std::vector<KernelImage> images;
  for (const std::string &machine : line.bundle) {
    CompileOptions options = getCompileOptions(line);
    options.target = machine;
    Result<KernelImage> image = emit(source, options);
    if (!image)
      return llvm::createStringError(machine + ": " + image.getStatus().str());
    images.push_back(std::move(*image));
  }
  Result<std::string> bundle = writeBundle(images);
  if (!bundle)
    return llvm::createStringError(bundle.getStatus().str());
  return std::move(*bundle);
}

/// Shows an error of the library as those of the parser are shown: "source:2:8: .." has a line and
/// a column. False where it has none.
static bool showPlace(StringRef message, const llvm::SourceMgr &sources) {
  unsigned row, column;
  StringRef rest = message;
  if (!rest.consume_front("source:") || rest.consumeInteger(10, row) || !rest.consume_front(":") ||
      rest.consumeInteger(10, column) || !rest.consume_front(": "))
    return false;
  sources.PrintMessage(
      const_cast<llvm::SourceMgr &>(sources).FindLocForLineAndColumn(1, row, column),
      llvm::SourceMgr::DK_Error, rest);
  return true;
}

/// Writes the entries of the cache. Programs find them under the options that they give, which are
/// the defaults but for those that were said here.
static llvm::Error ship(const CommandLine &line, StringRef source) {
  llvm::SmallString<128> folder(line.ship);
  if (std::error_code code = llvm::sys::fs::make_absolute(folder))
    return llvm::errorCodeToError(code);
  CompileOptions options = getCompileOptions(line);
  if (!line.way.getNumOccurrences())
    options.way = CompileOptions().way;
  Result<unsigned> count = shipKernels(source, options, std::string(folder), [&](StringRef way) {
    return llvm::is_contained(line.shipWays, way);
  });
  if (!count)
    return llvm::createStringError(count.getStatus().str());
  llvm::errs() << "attn-translate: " << *count << " entries in " << folder << "\n";
  return llvm::Error::success();
}

/// Room 8, by the road that programs take too. Nothing after diagnostics.
static llvm::Expected<std::optional<std::string>> printPTX(const CommandLine &line,
                                                           const llvm::SourceMgr &sources) {
  if (!line.bundle.empty()) {
    llvm::Expected<std::string> bundle =
        printBundle(line, sources.getMemoryBuffer(1)->getBuffer().str());
    if (!bundle)
      return bundle.takeError();
    return std::optional<std::string>(std::move(*bundle));
  }
  CompileOptions options = getCompileOptions(line);
  Result<KernelImage> image = emit(sources.getMemoryBuffer(1)->getBuffer().str(), options);
  if (!image && showPlace(image.getStatus().message, sources))
    return std::nullopt;
  if (!image)
    return llvm::createStringError(image.getStatus().str());
  if (!line.plan.empty())
    if (llvm::Error error = write(line.plan, [&](llvm::raw_ostream &os) { os << image->plan; }))
      return error;
  if (!line.ship.empty())
    if (llvm::Error error = ship(line, sources.getMemoryBuffer(1)->getBuffer()))
      return error;
  return image->ptx;
}

static void addPasses(OpPassManager &pm, const CommandLine &line, Room start, Room until,
                      const HostInfo &host, const DoorVisitor &visit = nullptr) {
  PipelineOptions options;
  options.target = line.target != TargetKind::CUDA ? "cpu"
                   : line.machine.empty()          ? "cuda"
                                                   : line.machine;
  options.lanes = host.f32Lanes;
  options.bf16Dot = host.hasBF16Dot;
  options.schedule = getOverrides(getCompileOptions(line));
  options.fused = line.fused.getValue();
  options.way = line.way.getValue();
  RoomDevice device = line.target == TargetKind::CUDA ? RoomDevice::CUDA : RoomDevice::CPU;
  if (start < until || start == Room::Problem)
    buildPipeline(pm, options, start == Room::Problem ? start : getNext(start, device), until,
                  visit);
}

/// The program, which is in the room `start`, as it leaves a room of MLIR, or as text of LLVM. None
/// after diagnostics.
static llvm::Expected<std::optional<std::string>>
printRoom(const CommandLine &line, Room start, Room room, ModuleOp module, const HostInfo &host) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager pm(module.getContext());
  addPasses(pm, line, start, room, host);
  if (failed(pm.run(*copy)))
    return std::nullopt;
  if (getInfo(room).isText()) {
    llvm::Expected<std::string> text = printCompiled(*copy, host, room == Room::Assembly);
    if (!text)
      return text.takeError();
    return std::move(*text);
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  copy->print(os);
  return text;
}

/// The program at the last door. Nothing after diagnostics.
static llvm::Expected<std::optional<std::string>> printDoor(const CommandLine &line,
                                                            ModuleOp module,
                                                            const llvm::SourceMgr &sources,
                                                            const HostInfo &host) {
  llvm::Expected<Room> start = findStart(line, module);
  if (!start)
    return start.takeError();
  if (line.until != Room::PTX)
    return printRoom(line, *start, line.until, module, host);
  return *start == Room::Problem ? printPTX(line, sources) : resumeToPTX(line, module, *start);
}

/// The compiler's choices, without the IR after them.
static std::string printDecisions(const CommandLine &line, StringRef source) {
  CompileOptions options = getCompileOptions(line);
  if (line.target != TargetKind::CUDA)
    options.device = DeviceKind::CPU;
  // The room in which the bounds of masks are known.
  Result<std::string> text = explain(source, options, "online");
  std::string decisions;
  if (text)
    for (StringRef rest = *text; rest.starts_with("//");) {
      StringRef first;
      std::tie(first, rest) = rest.split('\n');
      decisions += first.drop_front(2).ltrim().str() + "\n";
    }
  return decisions;
}

/// Mask and timeline of a call, where nobody wants none.
static llvm::Expected<std::optional<Pictures>> drawPictures(const CommandLine &line,
                                                            const DialectRegistry &registry,
                                                            StringRef source,
                                                            const HostInfo &host) {
  if (line.shape == "none")
    return std::nullopt;
  RunOptions options;
  options.file = line.input;
  options.entry = line.entry;
  if (llvm::Error error = parseShape(line.shape, options.shape))
    return error;
  options.device = line.target == TargetKind::CUDA ? Device::Simulator : Device::CPU;
  options.target = line.machine;
  options.schedule = getOverrides(getCompileOptions(line));
  options.fused = line.fused;
  options.way = line.way.getNumOccurrences() ? line.way.getValue() : options.way;
  options.jit.host = host;
  Pictures pictures = makePictures(registry, source, options, !line.shape.empty());
  if (line.maskTiles.empty())
    return std::optional(std::move(pictures));
  llvm::Expected<MaskTiles> tiles = readMaskTiles(line.maskTiles);
  if (!tiles)
    return tiles.takeError();
  if (pictures.mask)
    return std::optional(std::move(pictures));
  pictures.mask = std::move(*tiles);
  // What kept the tool from drawing it.
  llvm::erase_if(pictures.notes, [](StringRef note) { return note.starts_with("the mask "); });
  return std::optional(std::move(pictures));
}

/// All doors from the program's own to the last one. After diagnostics the page has the doors that
/// were reached, and says so.
static llvm::Expected<Page> makePage(const CommandLine &line, const DialectRegistry &registry,
                                     ModuleOp module, const llvm::SourceMgr &sources,
                                     const HostInfo &host) {
  llvm::Expected<Room> start = findStart(line, module);
  if (!start)
    return start.takeError();
  Page page;
  StringRef source = sources.getMemoryBuffer(1)->getBuffer();
  StageRecorder recorder(source, page.stages);
  ScopedDiagnosticHandler diagnostics(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && page.stopped.empty())
      page.stopped = diagnostic.str();
    // Others show it.
    return failure();
  });
  OwningOpRef<ModuleOp> copy = module.clone();
  if (*start != Room::Problem)
    recorder.visit(getInfo(*start).name, *copy);
  RoomDevice device = line.target == TargetKind::CUDA ? RoomDevice::CUDA : RoomDevice::CPU;
  Room last =
      std::min(line.until.getValue(), device == RoomDevice::CUDA ? Room::Thread : Room::LLVM);
  PassManager pm(module.getContext());
  addPasses(pm, line, *start, last, host,
            [&](StringRef room, ModuleOp at) { recorder.visit(room, at); });
  if (failed(pm.run(*copy))) {
    page.stopped = "expected " + describe(last) + ", got an error: " + page.stopped;
    return page;
  }
  if (*start == Room::Problem) {
    page.decisions = printDecisions(line, source);
    llvm::Expected<std::optional<Pictures>> pictures = drawPictures(line, registry, source, host);
    if (!pictures)
      return pictures.takeError();
    page.pictures = std::move(*pictures);
  }
  for (const RoomInfo &info : getRooms()) {
    if (!info.isText() || !info.isOnTheWayTo(device) || info.room > line.until)
      continue;
    llvm::Expected<std::optional<std::string>> text = std::nullopt;
    if (info.room != Room::PTX) {
      OwningOpRef<ModuleOp> compiled = copy->clone();
      text = printCompiled(*compiled, host, info.room == Room::Assembly);
    } else {
      text = *start == Room::Problem ? printPTX(line, sources) : resumeToPTX(line, module, *start);
    }
    if (!text)
      return text.takeError();
    if (*text)
      recorder.add(info, std::move(**text));
    else
      page.stopped = "expected " + describe(info.room) + ", got an error";
  }
  return page;
}

int attn::runAttnTranslate(int argc, const char *const *argv, DialectRegistry &registry) {
  static CommandLine *line = new CommandLine;
  cl::HideUnrelatedOptions(line->category);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { printVersion(os, "attn-translate"); });
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "attn-translate: takes attention through the rooms of the compiler\n",
          &stream))
    return fail(llvm::createStringError(describeComplaint("attn-translate", complaint)));
  if (line->list) {
    printList(llvm::outs());
    return 0;
  }
  if (llvm::Error error = resolve(*line))
    return fail(std::move(error));
  HostOverride overrides;
  overrides.isForElsewhere = true;
  if (!line->cpu.empty())
    overrides.cpu = line->cpu;
  llvm::Expected<HostInfo> host = getHostInfo(overrides);
  if (!host)
    return fail(host.takeError());

  llvm::SourceMgr sources;
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(line->input, /*IsText=*/true);
  if (!buffer)
    return fail(llvm::createStringError("expected to read '" + line->input + "', got " +
                                        buffer.getError().message()));
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;
  if (!line->html) {
    llvm::Expected<std::optional<std::string>> text =
        printDoor(*line, module.get(), sources, *host);
    if (!text)
      return fail(text.takeError());
    if (!*text)
      return 1;
    llvm::Error error = write(line->output, [&](llvm::raw_ostream &os) { os << **text; });
    return error ? fail(std::move(error)) : 0;
  }
  llvm::Expected<Page> page = makePage(*line, registry, module.get(), sources, *host);
  if (!page)
    return fail(page.takeError());
  StringRef name =
      line->input == "-" ? StringRef("standard input") : llvm::sys::path::filename(line->input);
  page->title = ("attn: " + name).str();
  if (llvm::Error error = write(line->output, [&](llvm::raw_ostream &os) { writeHtml(os, *page); }))
    return fail(std::move(error));
  if (page->stopped.empty())
    return 0;
  llvm::errs() << "attn-translate: the page has the rooms that were reached\n";
  return 1;
}
