//===- Problem.h - attentions to test -------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_PROBLEM_H
#define ATTN_TEST_EXECUTION_PROBLEM_H

#include "lib/Support/Array.h"
#include <optional>
#include <string>
#include <vector>

namespace attn::test {

/// A captured tensor: its MLIR type, its shape from (B, H, M, N), its contents.
struct Capture {
  enum Kind {
    QueryIds,
    KeyIds,
    Lengths,
    Slopes,
    Bias,
    Sink,
    Scale,
    Floats,
    Buckets,
    Seed,
    Offsets,
    Scales,
    Large
  } kind;
  const char *name;
  std::string type;
  /// Floats, Buckets, Scales and Large: letters of extents, T for kTableSize, K for key heads, Q
  /// and C for blocks of rows and of keys.
  const char *dims = "";
  /// Whether its gradient is asked for, if it has one.
  bool isWanted = true;

  /// Whether scores move with it.
  bool isTrained() const {
    return isWanted && (kind == Slopes || kind == Bias || kind == Floats || kind == Large);
  }
};

/// Buckets are numbers below.
constexpr int64_t kTableSize = 11;

extern const Capture kQueryIds, kKeyIds, kLengths, kSlopes, kBias, kSink, kScale, kSeed;

/// How scores become large; what f32 makes of them is then known to the bit.
struct LargeScores {
  /// The text for the f64 reference, which rounds scores as f32 does.
  std::string reference;
  /// A power of two that scores are multiplied by before a number is added.
  double factor = 1;
  /// By which power of two some rows of queries are larger than others.
  int64_t rowExponent = 0;
};

/// What a test is about: the text between the operands and the types, and what it reads.
struct Variant {
  std::string name, text;
  std::vector<Capture> captures = {};
  /// Ops before the attention.
  std::string prologue = "";
  /// Scores of which f32 has no fractions left (LargeScores.h); other variants have none.
  std::optional<LargeScores> large = std::nullopt;

  /// Whether weights have factors, which may be 0.
  bool hasFactors() const { return text.find("dropout") != std::string::npos; }
  /// Whether scores take functions that GPUs have no instructions for.
  bool hasFunctions() const { return text.find("math.erf") != std::string::npos; }
};

/// Promises that the document ids are sorted; the variant then reads %sorted_q and %sorted_k.
extern const char *const kSortedIds;

/// The variants of the acceptance list.
std::vector<Variant> getVariants();
/// Scores that move with tensors read in every way there is: one element for all, by head, by row,
/// by key, by distance, by element, and by what another tensor holds.
std::vector<Variant> getTrainedScores();
/// The variants, and masks of users that leave holes: in parts that heads of one key head share,
/// nested, and by what a tensor holds.
std::vector<Variant> getVariantsAndMasks();
/// The one of a name.
Variant getVariant(llvm::StringRef name);
/// Documents whose rows and keys have the ids of one tensor, so that each row keeps its own key;
/// for at most as many rows as keys.
std::vector<Variant> getOwnIds();
extern const Variant kFull, kCausal;

/// How tensors of rank 4 lie in memory.
enum class Memory {
  RowMajor,
  /// (b, s, h, d) instead of (b, h, s, d).
  RowsFirst,
  /// Any order of the first three dimensions, with gaps, another one for each tensor.
  Random,
  /// The same, with a gap before the last batch, head or row that is at least 2^31 elements wide.
  /// GPUs only: no more than what is used is kept on the host.
  Far
};

/// What a kernel is called with.
struct Extents {
  int64_t m, n;
  int64_t batch = 2, heads = 2, keyHeads = 2;
};

/// As devices hold it: the unit of what lse loses to rounding (s17).
inline constexpr float kLog2e = 1.44269504f;

/// Scales of elements of 8 bits: none, or one for a tensor, for each batch and key head, or for
/// each block of rows of a head too.
enum class Scales { None, Tensor, Heads, Blocks };

/// What a kernel is compiled for.
struct Problem {
  /// Of elements; of the output alone where others have 8 bits, `narrow`.
  std::string type = "f32";
  std::string narrow;
  /// Whether what elements of 16 bits give is f32: the output, and d_query, d_key and d_value.
  bool isWide = false;
  Scales scales = Scales::None;
  int64_t d = 64, dv = 64;
  /// What types say of the other extents; by default nothing.
  std::optional<Extents> extents;
  /// Whether lse is a result, and after it what lse lost to rounding.
  bool withLse = false, withLow = false;
  int64_t blockM = 0, blockN = 0, splits = 1;
  /// Slots of packed heads (attn.pack), on GPUs where rows are few; 0: heads are not packed.
  int64_t slots = 0;
  /// Whether the device decides how many parts the keys of packed heads have.
  bool fills = false;
  /// Whether sequences get parts by their lengths, where the device decides how many there are.
  bool balances = false;
  /// Sizes of which sequences, on GPUs: short, long, few, or auto by the extents of the call.
  std::string way = "auto";
  Memory memory = Memory::RowMajor;
  /// Keys of a page of the pools in which keys and values lie, of N / page pages a sequence; 0:
  /// they lie in no pages.
  int64_t page = 0;
  /// Whether query, key and value are rows of sequences, and results are placed there.
  bool isRagged = false;
  /// Whether rows of no sequence are 0 in what is placed; otherwise nothing is written there.
  bool clears = false;
  /// Whether entries of the table, or offsets of sequences, are i64.
  bool wideTable = false;
  /// The GPU to run on while another one is current; -1: the current one.
  int gpu = -1;
  /// The CPU to compile for; empty: this one.
  std::string cpu;

  const std::string &getOperandType() const { return narrow.empty() ? type : narrow; }
  std::string getResultType() const { return isWide ? "f32" : type; }
};

/// The scales of queries, keys and values.
std::vector<Capture> getScales(const Problem &problem);

/// The element type of a tensor type, as in "tensor<?x?xi32>".
ElementKind getElementKind(llvm::StringRef type);

/// The types of attention's tensors.
struct TensorTypes {
  explicit TensorTypes(const Problem &problem);
  std::string query, key, value, output, row;
  /// Of the gradient of the output, and of those of the query, the key and the value.
  std::string outputGradient, queryGradient, keyGradient, valueGradient;
};

/// The function as a user writes it.
std::string makeSource(const Variant &variant, const Problem &problem);

/// An argument of a call.
struct Input {
  Array array;
  bool isScalar = false;
  double scalar = 0;
};

/// Query, key, value and what the variant captures, drawn with seeds from `seed` on. Pools of pages
/// stand for key and value, and the table of both follows them.
std::vector<Input> makeInputs(const Variant &variant, const Problem &problem,
                              const Extents &extents, uint64_t seed);

/// Row-major, or rows first if the problem says so. Extents that do not fit memory end the program.
Array allocate(ElementKind kind, llvm::ArrayRef<int64_t> shape, Memory memory = Memory::RowMajor);

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_PROBLEM_H
