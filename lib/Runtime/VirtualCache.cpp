//===- VirtualCache.cpp - keys and values that grow where they lie -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/VirtualCache.h"
#include "lib/Runtime/AddressSpace.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_map>

namespace attn {

static Status fail(const std::string &message, std::string hint = "") {
  return {StatusCode::InvalidArgument, message, std::move(hint)};
}

namespace {
/// Rows of one kind, a sequence after the other: keys of a layer, or all that a token has.
struct Plane {
  size_t rowBytes = 0;
  /// From the base of the addresses, and from one sequence to the next.
  size_t begin = 0, span = 0;
};

/// A tensor of the caller: where it begins, and its shape and strides.
struct View {
  size_t offset = 0;
  int64_t shape[4] = {}, strides[4] = {};
};

/// The memory of one sequence in one plane, from its beginning.
using Pieces = llvm::SmallVector<AddressSpace::Piece, 2>;

struct Sequence {
  int64_t tokens = 0;
  /// For each plane; empty where there are none.
  std::vector<Pieces> pieces;
  /// Set where it was released, and memory may still be read: until this mark.
  std::optional<AddressSpace::Mark> leaving;

  bool hasMemory() const {
    return !llvm::all_of(pieces, [](const Pieces &of) { return of.empty(); });
  }
};
} // namespace

struct VirtualCache::State {
  explicit State(const VirtualCacheSpec &spec) : spec(spec) {}
  ~State() { clear(); }

  Status open();
  Status grow(Sequence &sequence, size_t number, int64_t tokens);
  Status growPlane(size_t plane, Sequence &sequence, size_t number, int64_t tokens);
  Result<int64_t> share(Sequence &from, Sequence &to, size_t number, int64_t tokens);
  Status release(Sequence &sequence, void *stream);
  Status trim();

  Status checkSequence(const char *name, int64_t number) const;
  /// Takes memory back that streams have passed; waits for that of `waited`.
  Status settle(const Sequence *waited = nullptr);
  Status takeBack(Sequence &sequence, size_t number);
  /// Puts the stand-in at the beginning of each plane, or takes it from there.
  Status mapStandIn();
  Status unmapStandIn();
  Result<AddressSpace::Piece> takePiece();
  void dropPiece(AddressSpace::Piece piece);
  size_t getOffset(size_t plane, size_t number) const {
    return planes[plane].begin + number * planes[plane].span;
  }
  /// The most of these tokens that fill whole pieces in every plane.
  int64_t countShared(int64_t tokens) const;
  Result<TensorView> getView(int64_t layer, bool isValue) const;
  void addPlanes();
  View makeView(const Plane &plane, size_t first, int64_t columns) const;
  void clear();

  VirtualCacheSpec spec;
  mutable std::mutex mutex;
  std::unique_ptr<AddressSpace> space;
  std::vector<Plane> planes;
  /// Keys and values of each layer, in turn.
  std::vector<View> views;
  std::vector<Sequence> sequences;
  /// How many sequences have a piece, and pieces that none has.
  std::unordered_map<AddressSpace::Piece, int64_t> users;
  std::vector<AddressSpace::Piece> unused;
  size_t numPieces = 0;
  /// Stands where the first sequence begins while that has no memory: the driver is asked whose
  /// memory a tensor is, by its address. No kernel reads it.
  std::optional<AddressSpace::Piece> standIn;
  bool hasStandIn = false;
};

//===----------------------------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------------------------===//

static Status checkSpec(const VirtualCacheSpec &spec) {
  struct Count {
    const char *name;
    int64_t value, most;
  };
  // Each layer and sequence has an entry in tables.
  const Count counts[] = {{"sequences", spec.sequences, 1 << 20},
                          {"tokens", spec.tokens, INT32_MAX},
                          {"layers", spec.layers, 1 << 16},
                          {"keyHeads", spec.keyHeads, INT32_MAX},
                          {"headDim", spec.headDim, INT32_MAX}};
  for (const Count &count : counts)
    if (count.value < 1 || count.value > count.most)
      return fail(std::string(count.name) + ": expected a number from 1 to " +
                  std::to_string(count.most) + ", got " + std::to_string(count.value));
  if (spec.valueDim < 0 || spec.valueDim > INT32_MAX)
    return fail("valueDim: expected 0, or a number up to 2147483647, got " +
                std::to_string(spec.valueDim));
  if (spec.device < -1)
    return fail("device: expected -1 for the host, or the number of a GPU, got " +
                std::to_string(spec.device));
  return {};
}

void VirtualCache::State::addPlanes() {
  size_t element = static_cast<size_t>(getByteSize(spec.type));
  auto heads = static_cast<size_t>(spec.keyHeads), layers = static_cast<size_t>(spec.layers);
  size_t keys = heads * static_cast<size_t>(spec.headDim) * element;
  size_t values = heads * static_cast<size_t>(spec.valueDim) * element;
  if (spec.order == VirtualCacheSpec::Order::Tokens) {
    planes.push_back({layers * (keys + values)});
    return;
  }
  for (size_t layer = 0; layer < layers; ++layer) {
    planes.push_back({keys});
    planes.push_back({values});
  }
}

View VirtualCache::State::makeView(const Plane &plane, size_t first, int64_t columns) const {
  int64_t element = getByteSize(spec.type);
  auto row = static_cast<int64_t>(plane.rowBytes) / element;
  return {plane.begin + first,
          {spec.sequences, spec.keyHeads, spec.tokens, columns},
          {static_cast<int64_t>(plane.span) / element, columns, row, 1}};
}

Status VirtualCache::State::open() {
  Result<std::unique_ptr<AddressSpace>> opened = AddressSpace::open(spec.device);
  if (!opened)
    return opened.takeStatus();
  space = std::move(*opened);
  addPlanes();
  size_t bytes = 0;
  for (Plane &plane : planes) {
    plane.begin = bytes;
    bool isTooMany = false;
    size_t rows =
        llvm::SaturatingMultiply(plane.rowBytes, static_cast<size_t>(spec.tokens), &isTooMany);
    // A number of addresses that no machine has.
    constexpr size_t most = size_t(1) << 48;
    if (isTooMany || rows > most)
      return {StatusCode::ResourceLimit,
              "expected addresses for " + std::to_string(spec.tokens) +
                  " tokens of a sequence, got fewer",
              "reserve fewer tokens"};
    plane.span = llvm::alignTo(rows, space->getPieceBytes());
    bytes = llvm::SaturatingMultiplyAdd(plane.span, static_cast<size_t>(spec.sequences), bytes,
                                        &isTooMany);
    if (isTooMany || bytes > most)
      return {StatusCode::ResourceLimit,
              "expected addresses for " + std::to_string(spec.sequences) + " sequences, got fewer",
              "reserve fewer sequences, or fewer tokens"};
  }
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    bool isToken = planes.size() == 1;
    size_t first = isToken ? static_cast<size_t>(layer) * planes[0].rowBytes / spec.layers : 0;
    size_t keys = spec.keyHeads * spec.headDim * getByteSize(spec.type);
    views.push_back(makeView(planes[isToken ? 0 : 2 * layer], first, spec.headDim));
    views.push_back(
        makeView(planes[isToken ? 0 : 2 * layer + 1], isToken ? first + keys : 0, spec.valueDim));
  }
  sequences.resize(spec.sequences);
  if (Status status = space->reserve(bytes); !status.ok())
    return status;
  Result<AddressSpace::Piece> made = space->make();
  if (!made)
    return made.takeStatus();
  standIn = *made;
  return mapStandIn();
}

Status VirtualCache::State::mapStandIn() {
  for (size_t plane = 0; plane < planes.size(); ++plane)
    if (Status status = space->map(planes[plane].begin, {&*standIn, 1}); !status.ok()) {
      for (size_t done = 0; done < plane; ++done)
        (void)space->unmap(planes[done].begin, 1);
      return status;
    }
  hasStandIn = true;
  return {};
}

Status VirtualCache::State::unmapStandIn() {
  if (!hasStandIn)
    return {};
  hasStandIn = false;
  for (const Plane &plane : planes)
    if (Status status = space->unmap(plane.begin, 1); !status.ok())
      return status;
  return {};
}

Result<TensorView> VirtualCache::State::getView(int64_t layer, bool isValue) const {
  if (layer < 0 || layer >= spec.layers)
    return fail("layer: expected a number from 0 to " + std::to_string(spec.layers - 1) + ", got " +
                std::to_string(layer));
  const View &view = views[2 * layer + isValue];
  return TensorView{space->getBase() + view.offset, spec.type, 4, view.shape, view.strides};
}

//===----------------------------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------------------------===//

Result<AddressSpace::Piece> VirtualCache::State::takePiece() {
  AddressSpace::Piece piece = 0;
  if (unused.empty()) {
    Result<AddressSpace::Piece> made = space->make();
    if (!made)
      return made;
    piece = *made;
    ++numPieces;
  } else {
    piece = unused.back();
    unused.pop_back();
  }
  users[piece] = 1;
  return piece;
}

void VirtualCache::State::dropPiece(AddressSpace::Piece piece) {
  auto found = users.find(piece);
  if (--found->second)
    return;
  users.erase(found);
  unused.push_back(piece);
}

Status VirtualCache::State::takeBack(Sequence &sequence, size_t number) {
  sequence.leaving.reset();
  for (auto [plane, pieces] : llvm::enumerate(sequence.pieces)) {
    if (Status status = space->unmap(getOffset(plane, number), pieces.size()); !status.ok())
      return status;
    for (AddressSpace::Piece piece : pieces)
      dropPiece(piece);
    pieces.clear();
  }
  sequence.pieces.clear();
  return number == 0 && standIn && !hasStandIn ? mapStandIn() : Status();
}

Status VirtualCache::State::settle(const Sequence *waited) {
  for (auto [number, sequence] : llvm::enumerate(sequences)) {
    if (!sequence.leaving)
      continue;
    Result<bool> isPassed = space->pass(*sequence.leaving, &sequence == waited);
    if (!isPassed)
      return isPassed.takeStatus();
    if (!*isPassed)
      continue;
    if (Status status = takeBack(sequence, number); !status.ok())
      return status;
  }
  return {};
}

void VirtualCache::State::clear() {
  if (!space)
    return;
  for (auto [number, sequence] : llvm::enumerate(sequences)) {
    if (sequence.leaving)
      (void)space->pass(*sequence.leaving, true);
    (void)takeBack(sequence, number);
  }
  (void)unmapStandIn();
  if (standIn)
    (void)space->destroy(*standIn);
  (void)trim();
}

Status VirtualCache::State::trim() {
  if (Status status = settle(); !status.ok())
    return status;
  while (!unused.empty()) {
    if (Status status = space->destroy(unused.back()); !status.ok())
      return status;
    unused.pop_back();
    --numPieces;
  }
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------------------------===//

Status VirtualCache::State::checkSequence(const char *name, int64_t number) const {
  if (number >= 0 && number < spec.sequences)
    return {};
  return fail(std::string(name) + ": expected a number from 0 to " +
              std::to_string(spec.sequences - 1) + ", got " + std::to_string(number));
}

Status VirtualCache::State::growPlane(size_t plane, Sequence &sequence, size_t number,
                                      int64_t tokens) {
  size_t pieceBytes = space->getPieceBytes();
  // As far as a tile reaches that begins before the last token.
  int64_t rows = tokens ? std::min(tokens + kAheadTokens, spec.tokens) : 0;
  size_t wanted = llvm::divideCeil(rows * planes[plane].rowBytes, pieceBytes);
  Pieces &pieces = sequence.pieces[plane], added;
  if (pieces.size() >= wanted)
    return {};
  Status status;
  while (status.ok() && pieces.size() + added.size() < wanted) {
    Result<AddressSpace::Piece> piece = takePiece();
    if (piece)
      added.push_back(*piece);
    else
      status = piece.takeStatus();
  }
  if (status.ok())
    status = space->map(getOffset(plane, number) + pieces.size() * pieceBytes,
                        {added.data(), added.size()});
  if (status.ok())
    pieces.append(added);
  else
    llvm::for_each(added, [&](AddressSpace::Piece piece) { dropPiece(piece); });
  return status;
}

Status VirtualCache::State::grow(Sequence &sequence, size_t number, int64_t tokens) {
  if (tokens < 0 || tokens > spec.tokens)
    return fail("tokens: expected a number from 0 to " + std::to_string(spec.tokens) + ", got " +
                std::to_string(tokens));
  // Its addresses have other memory from here on.
  if (Status status = settle(&sequence); !status.ok())
    return status;
  if (number == 0 && tokens)
    if (Status status = unmapStandIn(); !status.ok())
      return status;
  sequence.pieces.resize(planes.size());
  for (size_t plane = 0; plane < planes.size(); ++plane)
    if (Status status = growPlane(plane, sequence, number, tokens); !status.ok()) {
      // Other planes may be longer than this one: the next call goes on from there.
      if (!sequence.tokens)
        (void)takeBack(sequence, number);
      return status;
    }
  sequence.tokens = std::max(sequence.tokens, tokens);
  return {};
}

int64_t VirtualCache::State::countShared(int64_t tokens) const {
  auto pieceBytes = static_cast<int64_t>(space->getPieceBytes());
  // The planes agree on a number sooner or later: 0 is one.
  for (int64_t before = -1; before != tokens;) {
    before = tokens;
    for (const Plane &plane : planes) {
      auto rowBytes = static_cast<int64_t>(plane.rowBytes);
      // A token of two pieces would be written by both sequences.
      int64_t together = std::lcm(rowBytes, pieceBytes);
      tokens = tokens * rowBytes / together * together / rowBytes;
    }
  }
  return tokens;
}

Result<int64_t> VirtualCache::State::share(Sequence &from, Sequence &to, size_t number,
                                           int64_t tokens) {
  if (&from == &to || to.tokens)
    return fail("to: expected an empty sequence, got one of " + std::to_string(to.tokens) +
                    " tokens",
                "release it before");
  if (tokens < 0 || tokens > from.tokens)
    return fail("tokens: expected a number from 0 to " + std::to_string(from.tokens) +
                ", those that the other has, got " + std::to_string(tokens));
  if (Status status = settle(&to); !status.ok())
    return status;
  // Of an earlier call that failed.
  if (Status status = takeBack(to, number); !status.ok())
    return status;
  int64_t shared = countShared(tokens);
  if (!shared)
    return shared;
  if (number == 0)
    if (Status status = unmapStandIn(); !status.ok())
      return status;
  to.pieces.resize(planes.size());
  for (auto [plane, pieces] : llvm::enumerate(to.pieces)) {
    size_t count = shared * planes[plane].rowBytes / space->getPieceBytes();
    llvm::ArrayRef<AddressSpace::Piece> of = llvm::ArrayRef(from.pieces[plane]).take_front(count);
    Status status = space->map(getOffset(plane, number), {of.data(), of.size()});
    if (!status.ok()) {
      (void)takeBack(to, number);
      return status;
    }
    for (AddressSpace::Piece piece : of)
      ++users[piece];
    pieces.append(of.begin(), of.end());
  }
  // With what tiles read past its end.
  if (Status status = grow(to, number, shared); !status.ok())
    return status;
  return shared;
}

Status VirtualCache::State::release(Sequence &sequence, void *stream) {
  if (Status status = settle(); !status.ok())
    return status;
  if (sequence.leaving || !sequence.hasMemory())
    return {};
  Result<AddressSpace::Mark> mark = space->mark(stream);
  if (!mark)
    return mark.takeStatus();
  sequence.leaving = *mark;
  sequence.tokens = 0;
  return settle();
}

//===----------------------------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------------------------===//

VirtualCache::VirtualCache(std::unique_ptr<State> state) : state(std::move(state)) {}
VirtualCache::VirtualCache(VirtualCache &&) noexcept = default;
VirtualCache &VirtualCache::operator=(VirtualCache &&) noexcept = default;
VirtualCache::~VirtualCache() = default;

Result<VirtualCache> VirtualCache::create(const VirtualCacheSpec &spec) {
  VirtualCacheSpec whole = spec;
  if (!whole.valueDim)
    whole.valueDim = whole.headDim;
  if (Status status = checkSpec(whole); !status.ok())
    return status;
  auto state = std::make_unique<State>(whole);
  if (Status status = state->open(); !status.ok())
    return status;
  return VirtualCache(std::move(state));
}

Status VirtualCache::grow(int64_t sequence, int64_t tokens) {
  std::lock_guard lock(state->mutex);
  if (Status status = state->checkSequence("sequence", sequence); !status.ok())
    return status;
  return state->grow(state->sequences[sequence], sequence, tokens);
}

Result<int64_t> VirtualCache::share(int64_t from, int64_t to, int64_t tokens) {
  std::lock_guard lock(state->mutex);
  for (auto [name, number] : {std::pair("from", from), std::pair("to", to)})
    if (Status status = state->checkSequence(name, number); !status.ok())
      return status;
  return state->share(state->sequences[from], state->sequences[to], to, tokens);
}

Status VirtualCache::release(int64_t sequence, void *stream) {
  std::lock_guard lock(state->mutex);
  if (Status status = state->checkSequence("sequence", sequence); !status.ok())
    return status;
  return state->release(state->sequences[sequence], stream);
}

Status VirtualCache::trim() {
  std::lock_guard lock(state->mutex);
  return state->trim();
}

Result<TensorView> VirtualCache::getKeys(int64_t layer) const {
  return state->getView(layer, false);
}
Result<TensorView> VirtualCache::getValues(int64_t layer) const {
  return state->getView(layer, true);
}

int64_t VirtualCache::getTokens(int64_t sequence) const {
  std::lock_guard lock(state->mutex);
  return state->checkSequence("", sequence).ok() ? state->sequences[sequence].tokens : -1;
}

int64_t VirtualCache::getBytes() const {
  std::lock_guard lock(state->mutex);
  return static_cast<int64_t>(state->numPieces * state->space->getPieceBytes());
}

int64_t VirtualCache::getPieceTokens() const {
  size_t bytes = 0;
  for (const Plane &plane : state->planes)
    bytes = std::max(bytes, plane.rowBytes);
  return static_cast<int64_t>(std::max<size_t>(1, state->space->getPieceBytes() / bytes));
}

const VirtualCacheSpec &VirtualCache::getSpec() const { return state->spec; }

} // namespace attn
