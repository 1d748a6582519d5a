//===- Pictures.cpp - a call of the program, as the page shows it -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A picture that cannot be drawn is no error of the program: the page has its rooms all the same,
// and says why.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnTranslate/Pictures.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Interpreter/MaskProof.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Tools/AttnRun/Binding.h"
#include "lib/Tools/AttnRun/Simulate.h"
#include "lib/Tools/AttnRun/Work.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace attn {

/// Of a mask that nobody has to wait for, and whose tiles can be seen.
static constexpr int64_t kMostPairs = int64_t(1) << 24, kMostTiles = 96;
static constexpr StringLiteral kUsualShape = "B=4,H=16,M=2048";

namespace {
class Artist {
public:
  Artist(mlir::MLIRContext &context, const RunOptions &options)
      : context(context), options(options) {}

  /// Finds the entry and the extents of its call.
  Error bind(StringRef text);
  std::string describeShape() const;
  Expected<std::optional<MaskTiles>> drawMask();
  Error simulateCall(Pictures &pictures);

private:
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> lower(Room room) const;
  std::pair<int64_t, int64_t> findTile() const;

  mlir::MLIRContext &context;
  RunOptions options;
  Source source;
  Binding binding;
};
} // namespace

Error Artist::bind(StringRef text) {
  if (Error error = attn::bind(parseSource(context, MemoryBuffer::getMemBufferCopy(text),
                                           options.file, options.entry, /*withGradients=*/false),
                               options, source, binding))
    return error;
  // Scalars, such as a scale, say nothing about tiles and time, as long as no mask reads them.
  for (auto [facts, type] : zip_equal(source.arguments, source.signature.arguments))
    if (type.isScalar)
      options.inputs.try_emplace(facts.name, "1");
  return Error::success();
}

/// Of letters that are as another one by default, those that differ from it.
std::string Artist::describeShape() const {
  std::string shape;
  std::pair<StringRef, StringRef> letters[] = {{"B", ""},  {"H", ""}, {"Hkv", "H"}, {"M", ""},
                                               {"N", "M"}, {"D", ""}, {"Dv", "D"}};
  for (auto [letter, usual] : letters) {
    std::optional<int64_t> extent = binding.get(letter);
    if (extent && (usual.empty() || extent != binding.get(usual)))
      shape += ((shape.empty() ? "" : " ") + letter + "=" + Twine(*extent)).str();
  }
  return shape;
}

Expected<mlir::OwningOpRef<mlir::ModuleOp>> Artist::lower(Room room) const {
  mlir::OwningOpRef<mlir::ModuleOp> module = source.module.get().clone();
  PipelineOptions passes;
  bool isGPU = options.device == Device::Simulator;
  passes.target = !isGPU ? "cpu" : options.target.empty() ? "cuda" : options.target;
  passes.lanes = options.jit.host.f32Lanes;
  passes.bf16Dot = options.jit.host.hasBF16Dot;
  passes.schedule = options.schedule;
  passes.fused = options.fused;
  passes.way = options.way;
  mlir::PassManager pm(&context);
  buildPipeline(pm, passes, room);
  if (failed(pm.run(*module)))
    return createStringError("expected passes that succeed");
  return std::move(module);
}

//===----------------------------------------------------------------------------------------===//
// The mask
//===----------------------------------------------------------------------------------------===//

/// Whether it hangs on what a call is given, other than extents.
static bool isOfArguments(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  if (!op)
    return isa<mlir::func::FuncOp>(value.getParentBlock()->getParentOp());
  return !isa<mlir::tensor::DimOp>(op) && any_of(op->getOperands(), isOfArguments);
}

static bool readsArguments(mlir::Region &mask) {
  bool reads = false;
  mask.walk([&](mlir::Operation *op) {
    reads |= !isa<mlir::tensor::DimOp>(op) && any_of(op->getOperands(), isOfArguments);
  });
  return reads;
}

/// Rows and keys of a step of the kernel for most calls, which has the name of the function.
std::pair<int64_t, int64_t> Artist::findTile() const {
  std::pair<int64_t, int64_t> tile = {64, 64};
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = lower(Room::Online);
  if (!module) {
    consumeError(module.takeError());
    return tile;
  }
  auto kernel = (*module)->lookupSymbol<mlir::func::FuncOp>(source.signature.name);
  if (!kernel)
    return tile;
  kernel.walk([&](mlir::Operation *op) {
    auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    if (!schedule)
      return mlir::WalkResult::advance();
    tile = {schedule->blockM, schedule->blockN};
    return mlir::WalkResult::interrupt();
  });
  return tile;
}

/// Asks the mask of the first batch and head about each pair.
static Expected<MaskTiles> countTiles(OriginalMasks::Attention &attention, int64_t tileRows,
                                      int64_t tileKeys) {
  MaskTiles mask;
  mask.rows = attention.sizes[2], mask.keys = attention.sizes[3];
  mask.tileRows = tileRows, mask.tileKeys = tileKeys;
  std::vector<Lane> keep(mask.keys);
  int64_t columns = divideCeilSigned(mask.keys, tileKeys), total = 0;
  for (int64_t row = 0; row < mask.rows; row += tileRows) {
    int64_t rows = std::min(tileRows, mask.rows - row);
    std::vector<int64_t> kept(columns);
    for (int64_t m = row; m < row + rows; ++m) {
      if (Error error = attention.evaluate(attention.origin[0], attention.origin[1],
                                           attention.origin[2] + m, attention.origin[3], keep))
        return std::move(error);
      for (int64_t n = 0; n < mask.keys; ++n)
        kept[n / tileKeys] += keep[n].i != 0;
    }
    std::string line;
    for (auto [column, count] : enumerate(kept)) {
      int64_t keys = std::min(tileKeys, mask.keys - int64_t(column) * tileKeys);
      line += count == rows * keys ? '2' : count ? '1' : '0';
      total += count;
    }
    mask.lines.push_back(std::move(line));
  }
  mask.density = double(total) / (double(mask.rows) * double(mask.keys));
  return mask;
}

/// Nothing where everything is kept. Errors say why there is no picture.
Expected<std::optional<MaskTiles>> Artist::drawMask() {
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = lower(Room::Problem);
  if (!module)
    return module.takeError();
  auto function = (*module)->lookupSymbol<mlir::func::FuncOp>(source.signature.name);
  bool hasMask = false, isOfTensors = false;
  function.walk([&](ScoredOpInterface op) {
    hasMask |= !op.getMask().empty();
    isOfTensors |= readsArguments(op.getMask());
  });
  if (!hasMask)
    return std::nullopt;
  if (isOfTensors)
    return createStringError("the mask reads tensors or numbers of a call (attn.explain draws it "
                             "in a notebook)");
  std::vector<RuntimeValue> arguments;
  for (auto [argument, type, shape] :
       zip_equal(function.getArguments(), source.signature.arguments, binding.arguments)) {
    if (type.isScalar) {
      arguments.push_back(isFloat(type.kind) ? RuntimeValue::real(1) : RuntimeValue::integer(1));
      continue;
    }
    Expected<RuntimeValue> value = makeShapeOnly(argument.getType(), shape);
    if (!value)
      return value.takeError();
    arguments.push_back(std::move(*value));
  }
  Expected<OriginalMasks> masks = OriginalMasks::capture(function, arguments);
  if (!masks)
    return masks.takeError();
  auto found = find_if(masks->getAttentions(), [](auto &each) { return each.mask.has_value(); });
  if (found == masks->getAttentions().end() || found->sizes[2] == 0 || found->sizes[3] == 0)
    return std::nullopt;
  if (found->sizes[2] > kMostPairs / found->sizes[3])
    return createStringError("a mask of more than 2^24 pairs is not drawn");
  auto [tileRows, tileKeys] = findTile();
  while (divideCeilSigned(found->sizes[2], tileRows) > kMostTiles)
    tileRows *= 2;
  while (divideCeilSigned(found->sizes[3], tileKeys) > kMostTiles)
    tileKeys *= 2;
  Expected<MaskTiles> mask = countTiles(*found, tileRows, tileKeys);
  if (!mask)
    return mask.takeError();
  return std::optional(std::move(*mask));
}

Expected<MaskTiles> readMaskTiles(StringRef path) {
  auto refuse = [&](const Twine &expected) {
    return createStringError("'" + path + "': expected " + expected);
  };
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return refuse("a readable file, got: " + buffer.getError().message());
  Expected<json::Value> parsed = json::parse((*buffer)->getBuffer());
  if (!parsed)
    return refuse("JSON, got: " + toString(parsed.takeError()));
  MaskTiles mask;
  const json::Object *object = parsed->getAsObject();
  const json::Array *tile = object ? object->getArray("tile") : nullptr;
  const json::Array *lines = object ? object->getArray("lines") : nullptr;
  auto number = [](std::optional<int64_t> value) { return value.value_or(0); };
  if (!tile || tile->size() != 2 || !lines)
    return refuse("rows, keys, tile, lines and density of a mask");
  mask.rows = number(object->getInteger("rows")), mask.keys = number(object->getInteger("keys"));
  mask.tileRows = number((*tile)[0].getAsInteger());
  mask.tileKeys = number((*tile)[1].getAsInteger());
  mask.density = object->getNumber("density").value_or(0);
  if (mask.rows < 1 || mask.keys < 1 || mask.tileRows < 1 || mask.tileKeys < 1)
    return refuse("extents and a tile above 0");
  for (const json::Value &line : *lines)
    mask.lines.push_back(line.getAsString().value_or("").str());
  size_t columns = divideCeilSigned(mask.keys, mask.tileKeys);
  bool fits = mask.lines.size() == size_t(divideCeilSigned(mask.rows, mask.tileRows)) &&
              all_of(mask.lines, [&](StringRef line) {
                return line.size() == columns && line.find_first_not_of("012") == StringRef::npos;
              });
  if (!fits)
    return refuse("a line of 0, 1 and 2 for each row of tiles");
  return mask;
}

//===----------------------------------------------------------------------------------------===//
// The timeline
//===----------------------------------------------------------------------------------------===//

Error Artist::simulateCall(Pictures &pictures) {
  RunOptions how = options;
  how.predict = true;
  Expected<std::vector<ArgumentValue>> inputs = makeInputs(source, binding, how);
  if (!inputs)
    return inputs.takeError();
  std::vector<Array> outputs(source.signature.results.size());
  Report report;
  std::optional<double> kept;
  std::optional<int64_t> rows = binding.get("M"), keys = binding.get("N");
  if (rows && keys)
    kept = countKeptPairs(source.module->lookupSymbol<mlir::func::FuncOp>(source.signature.name),
                          *rows, *keys);
  // Gradients have other products than those that are counted.
  bool hasGradients = false;
  source.module->walk([&](AttentionGradOp) { hasGradients = true; });
  if (!hasGradients)
    report.flops = binding.countFlops(FlopCount::Kept, kept);
  mlir::OwningOpRef<mlir::ModuleOp> module = source.module->clone();
  sim::Timeline timeline;
  if (Error error = simulate(*module, source, binding, *inputs, outputs, how, report, &timeline))
    return error;
  if (!report.findings.empty())
    return createStringError(report.findings.front());
  pictures.predicted = std::move(report.lines);
  if (timeline.spans.empty())
    return Error::success();
  raw_string_ostream os(pictures.timeline);
  timeline.printPicture(os);
  return Error::success();
}

Pictures makePictures(const mlir::DialectRegistry &registry, StringRef text, RunOptions options,
                      bool hasShape) {
  Pictures pictures;
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  // Rooms were made of the same text before: whoever asked for them was told.
  std::string told;
  mlir::ScopedDiagnosticHandler quiet(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && told.empty())
      told = diagnostic.str();
    return mlir::success();
  });
  auto note = [&](Error error) {
    std::string why = toString(std::move(error));
    pictures.notes.push_back(why + (told.empty() ? "" : ", got: " + told));
    told.clear();
  };
  // Extents of the types need no shape, and contradict another one.
  if (!hasShape)
    cantFail(parseShape(kUsualShape, options.shape));
  std::optional<Artist> artist(std::in_place, context, options);
  Error error = artist->bind(text);
  if (error && !hasShape) {
    consumeError(std::move(error));
    told.clear();
    options.shape.clear();
    artist.emplace(context, options);
    error = artist->bind(text);
  }
  if (error) {
    note(std::move(error));
    return pictures;
  }
  pictures.shape = artist->describeShape();
  if (Expected<std::optional<MaskTiles>> mask = artist->drawMask())
    pictures.mask = std::move(*mask);
  else
    note(mask.takeError());
  if (options.device == Device::Simulator)
    if (Error failed = artist->simulateCall(pictures))
      note(std::move(failed));
  return pictures;
}

} // namespace attn
