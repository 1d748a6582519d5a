//===- Compiler.h - from a description of attention to code that runs ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
//   attn::AttentionSpec spec;
//   spec.headDim = 64, spec.causal = attn::Causal::BottomRight;
//   attn::Result<attn::CompiledFunction> attention = attn::compile(spec);
//   if (!attention)
//     report(attention.getStatus().str());
//   attn::Status status = attention->run({query, key, value, output});
//
// Batches, heads, lengths and strides are run-time values: one function serves them all. Nothing
// throws, everything may be called from any number of threads at once.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_COMPILER_H
#define ATTN_COMPILER_H

#if __cplusplus < 202002L
#error "attn/Compiler.h: expected C++20 or later (-std=c++20); attn-c/attn.hpp is C++17"
#endif

#include "attn/Runtime.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// "0.1.0".
const char *getVersion();

//===----------------------------------------------------------------------------------------===//
// Sources and options
//===----------------------------------------------------------------------------------------===//

enum class DeviceKind : uint8_t { CPU, CUDA };

struct CompileOptions {
  DeviceKind device = DeviceKind::CPU;
  /// CUDA: the GPU as the driver numbers it; -1 for that of the calling thread's current context,
  /// or 0 if it has none.
  int ordinal = -1;
  /// CUDA: the kind of GPU to compile for, as in "sm_90a"; empty for the device's.
  std::string target;
  /// The processor in LLVM's spelling ("x86-64-v3"); empty for this machine's.
  std::string cpu;
  /// The most threads that a call uses; 0 for all of the process's pool, which has one for each
  /// physical core that the process may use.
  unsigned threads = 0;
  /// Query rows of a block, keys of a step; 0 lets the device's rule choose.
  int64_t blockM = 0, blockN = 0;
  /// Parts that the keys of a block are split into, for the grids of few rows and many keys that
  /// leave processors without a block. More than 1 costs a second kernel, which joins the parts,
  /// and memory for them during a call: `splits` times the output, in f32.
  int64_t splits = 1;
  /// Keys of a part, counted from the first key; 0: `splits` says how many parts there are. The
  /// bits of a row then depend on its query, its keys, its mask and scale alone, and not on the
  /// batch, on other sequences, or on the room of a cache (s22 of dialects/Attn/README.md). Memory
  /// during a call is the output in f32 for each part of all keys that there is room for. Gradients
  /// do not know it. A multiple of the keys of a step, which follow it where `blockN` is 0.
  int64_t fixedSplit = 0;
  /// CUDA: whether blocks that own keys also add to the gradient of the queries, where there are
  /// such blocks: five products in place of seven, but sums in any order, and other bits each time.
  /// Costs memory for that gradient in f32 during a call. Without it, gradients of queries, keys
  /// and values are the same bits each time.
  bool fused = true;
  /// CUDA: slots for the query heads that share a key head, 2, 4, ... 64, for calls with at most
  /// 128 / pack rows and at most so many heads in a group, which then read keys and values once for
  /// a group; 0: the rule's, where `way` is auto. Such calls split the keys by themselves, into
  /// parts whose number depends on the batch and the device, unless `splits` is more than 1.
  int64_t pack = 0;
  /// CUDA: the ways of running the function, between which each call chooses by its extents. Where
  /// there are several, each is compiled when a call first takes it (CompiledFunction::prepare).
  ///
  /// * auto: one for decoding, for few rows, for few keys and for short sequences, where the rule
  ///   has one, and one for all other calls;
  /// * lengths: one for short sequences, and one for all others;
  /// * short, long: one for all calls, with the sizes for such sequences;
  /// * few: one for all calls, with the sizes for at most 128 rows with many keys;
  /// * narrow: one for all calls, with the sizes for many rows with at most 80 keys, or 129 to 160;
  /// * groups: one for all calls: gradients of keys and values split the query heads of a group
  ///   into parts. With auto, calls take it that have few blocks of keys.
  std::string way = "auto";
  /// CUDA: whether not even the way of most calls is compiled before a call takes it.
  bool lazy = false;
  /// CUDA: whether blocks stay, one for each multiprocessor, and take one tile of rows after the
  /// other. This hides how blocks begin and end but takes registers. "auto": where it was measured
  /// to be faster; "on" and "off": one kernel for all calls.
  std::string stay = "auto";
  /// CUDA: multiprocessors that blocks that stay leave to other kernels. A kernel that moves data
  /// between GPUs otherwise waits for all of these blocks. Results are the same bits: parts of keys
  /// are counted as with 0. Blocks that do not stay leave theirs by themselves.
  int64_t reserve = 0;
  /// CUDA: whether parts of keys go to the sequences of a call by their lengths, where calls with
  /// few rows split keys by themselves (`pack`) and a mask bounds the keys of each sequence. Two
  /// small kernels before the call's count the keys and deal the parts, which costs a call some
  /// microseconds. Without it a long sequence among short ones has as many parts as they have.
  bool balance = false;
  /// CUDA: the maximum of a row may lag by a factor of 2^slack before sums are scaled; 0 to 16. -1:
  /// it never lags, as in the definition. Sums are then scaled in each step or, as with 0, where a
  /// maximum rose, whichever was measured to be faster; both give the same bits. 8 is 1 % faster,
  /// and 3 % at D = 256, for 1.04 times the rounding error (1.2 times where few weights are most of
  /// the sum).
  int64_t slack = -1;
  /// CUDA: rows of the calls that a search of sizes times; 0: no search. A search refuses sizes
  /// that spill registers or wait for memory by a model, and the error says which. It compiles the
  /// same code for the others.
  int64_t search = 0;
  /// The function to compile; empty when the source has just one public function.
  std::string entry;
  /// Whether code is kept on disk for the next process (CacheOptions). The environment's
  /// ATTN_CACHE=0 turns it off too.
  bool cache = true;
  /// An absolute path; empty for the environment's ATTN_CACHE_DIR, and then for the default of
  /// CacheOptions.
  std::string cacheDirectory;

  bool operator==(const CompileOptions &) const = default;
};

/// Keys at or before the row's own position. The two agree when M == N: top-left counts from the
/// first row and first key, bottom-right from the last.
enum class Causal : uint8_t { No, TopLeft, BottomRight };

/// Where the rows or keys of a call stand in the whole: at their own numbers, from an origin on, or
/// where a table says.
enum class Positions : uint8_t { Own, Origin, Table };

/// The common attentions without writing IR. Whatever else (score and mask functions) is source.
///
/// The function takes these in this order, of which * are there where the spec says so:
///
/// | argument    | elements | shape                                                           |
/// |-------------|----------|-----------------------------------------------------------------|
/// | query       | type     | (B, H, M, D)                                                    |
/// | key         | type     | (B, Hkv, N, D); with pages key_cache, (Np, P, Hkv, D)           |
/// | value       | type     | (B, Hkv, N, Dv); with pages value_cache, (Np, P, Hkv, Dv)       |
/// | page_table* | I32      | (B, C), with pages                                              |
/// | row_positions*, key_positions* | I32 | (1) for an origin, (M) and (N) for a table        |
/// | total*      | I32      | (2), with positions: M and N of the whole                       |
/// | seqused_k*  | I32      | (B), with lengths                                               |
/// | query_ids*  | I32      | (B, M), with documents                                          |
/// | key_ids*    | I32      | (B, N), with documents                                          |
/// | slopes*     | F32      | (H), with ALiBi                                                 |
/// | seed*       | I64      | (1), with dropout                                               |
/// | scale*      | F32      | a scalar                                                        |
/// | sink*       | F32      | (H)                                                             |
///
/// and gives output, (B, H, M, Dv), and lse*, F32 of shape (B, H, M).
///
/// With isGradient it also takes output, lse and d_output, which is of the type of query, and gives
/// d_query, d_key, d_value, d_sink* and d_slopes*, each of the shape of what it is the gradient of.
///
/// With isRagged the first arguments are others:
///
/// | argument                     | elements | shape                                            |
/// |------------------------------|----------|--------------------------------------------------|
/// | rows_query                   | type     | (T, H, D), the rows of all sequences             |
/// | rows_key, rows_value         | type     | (Tk, Hkv, D) and (Tk, Hkv, Dv)                   |
/// | cu_seqlens_q, cu_seqlens_k   | I32      | (B + 1), where each begins and the last one ends |
/// | max_seqlen_q, max_seqlen_k   | I8       | (M) and (N): their sizes are the most rows and   |
/// |                              |          | keys of a sequence, and nothing reads them       |
///
/// Then come slopes*, seed*, scale* and sink*. The results are rows_output, (T, H, Dv), and
/// rows_lse*, (T, H). A longer sequence is cut, and results of rows that are in no sequence are not
/// written.
struct AttentionSpec {
  /// Of query, key, value and output: F16, BF16 or F32. Or F8E4M3FN or F8E5M2, of query, key and
  /// value: then calls give q_descale, k_descale and v_descale too, by which elements are
  /// multiplied, F32 of shape (B, S) where S divides the heads.
  DataType type = DataType::F32;
  /// D of query and key; Dv of value and output, 0 for D.
  int64_t headDim = 0, valueDim = 0;
  Causal causal = Causal::No;
  /// Keys before and after the row's own position, counted from the bottom-right; -1 is no bound.
  int64_t windowLeft = -1, windowRight = -1;
  /// Whether calls give the factor of the products, otherwise 1/sqrt(D), and one more logit for
  /// each head.
  bool hasScale = false, hasSink = false;
  /// A second result, the natural logarithm of the sum of exponentials.
  bool returnsLse = false;
  /// P, the keys of a page; 0 where keys and values lie in one piece. Key n of sequence b is row
  /// n mod P of page page_table[b, n / P], so that N is C * P. Pages may be shared and in any
  /// order, with heads before or after rows: strides are free but for the last dimension's. An
  /// entry that no kept key needs may hold anything; nothing outside of the caches is read,
  /// whatever the table holds.
  int64_t pageSize = 0;
  /// Whether each sequence has its own number of keys, seqused_k[b], those of its own rows
  /// included. Bottom-right then counts from the last of these keys. Fewer than 0 are none, and
  /// more than N are N, though rows still count from the number that was given.
  bool hasLengths = false;
  /// Whether query, key and value are rows of sequences of any lengths, one after the other.
  /// Bottom-right then counts from the last row and key of each. On a GPU there are at most 65535.
  /// Not together with pages, lengths or documents.
  bool isRagged = false;
  /// Scores s become softcap * tanh(s / softcap); 0: they stay.
  double softcap = 0;
  /// Whether slopes[h] times the distance of a key from the row's own position is taken off a
  /// score, after the cap. Positions count from the bottom-right.
  bool hasAlibi = false;
  /// Whether rows keep the keys of their own document alone: query_ids[b, m] == key_ids[b, n].
  bool hasDocuments = false;
  /// The probability with which a weight becomes 0, and otherwise weight / (1 - p); 0: none. Which
  /// ones is a function of the seed and of positions alone, so that gradients drop the same.
  double dropout = 0;
  /// The gradients of the attention of the same spec instead of the attention: from its output, its
  /// lse and the gradient of its output. Not together with pages or isRagged.
  bool isGradient = false;
  /// With isGradient: whether d_query, d_key and d_value are F32, whatever the type: sums of
  /// several such gradients are rounded once then.
  bool hasWideGradients = false;
  /// Of the output where the type has 8 bits: F16, BF16 or F32. Where it has 16: F32, or else the
  /// type.
  DataType outputType = DataType::BF16;
  /// A call may have some rows and keys of a whole, as a GPU of several does, or a part of a
  /// prompt. Causal, windows, ALiBi and dropout then count in the whole, and ids of documents are
  /// read there: query_ids is (B, total[0]), key_ids is (B, total[1]). Tables do not decrease; the
  /// keys that a broken promise keeps are unspecified. Not together with pages, lengths or
  /// isRagged.
  Positions rowPositions = Positions::Own, keyPositions = Positions::Own;
};

/// InvalidArgument where words of a spec contradict each other; the message starts with the word.
Status checkSpec(const AttentionSpec &spec);

/// The same as IR text. Numbers that are out of range are found when the text is compiled.
std::string getSource(const AttentionSpec &spec);

//===----------------------------------------------------------------------------------------===//
// Compiled functions
//===----------------------------------------------------------------------------------------===//

/// An argument or a result.
struct ValueInfo {
  /// The SSA name in the source.
  std::string name;
  DataType type = DataType::F32;
  bool isScalar = false;
  /// -1 is decided by each call. Empty for a scalar.
  std::vector<int64_t> shape;
  /// The letter of each dimension, of B, H, Hkv, M, N, D, Dv and, of pages, Np, P and C; empty
  /// where the source does not tell. A tensor that a score or mask reads may be larger than its
  /// letters say.
  std::vector<std::string> letters;
};

struct FunctionInfo {
  std::string name;
  std::vector<ValueInfo> arguments, results;
  DeviceKind device = DeviceKind::CPU;
  /// CUDA: the GPU that the code is on, as the driver numbers it.
  int ordinal = -1;
  /// Milliseconds in the passes and in LLVM, 0 when the code was on disk; what this process
  /// compiled before counts once. `loadMs` is the linker's, or that of a GPU's driver, which
  /// assembles PTX that it has not seen yet.
  double passesMs = 0, llvmMs = 0, loadMs = 0;
  /// Whether the code was found on disk.
  bool isFromDisk = false;
  /// Problems that were repaired on the way, such as a damaged file in the cache.
  std::vector<std::string> remarks;
  /// CUDA: what the driver made of each kernel that was compiled with the function.
  std::vector<KernelInfo> kernels;
};

/// Code in this process. A handle: copies are cheap and share the code.
class CompiledFunction {
public:
  const FunctionInfo &getInfo() const;

  /// Calls the function with its arguments and then its results, which it fills, and returns when
  /// they are filled. Everything is checked first, and no memory is touched unless all of it is
  /// right:
  ///
  /// * count, type, rank, and alignment to the element's size;
  /// * extents: those of the type, and that equal letters agree;
  /// * the last stride: 1 for tensors of rank 2 and more, but any for tensors that only regions
  ///   read (on a GPU the source marks them `attn.strided`);
  /// * null addresses, and strides that leave the address space;
  /// * results that overlap themselves, each other or an argument.
  ///
  /// Two things are not checked: that strides stay inside the memory, and that captured tensors
  /// read at computed indices are large enough.
  ///
  /// A scalar argument is a number or a tensor of rank 0 in host memory.
  ///
  /// On a GPU, tensors are in its memory; those that attention reads and writes start at a multiple
  /// of 16 bytes and so do their rows. The call starts the kernels on `stream` and returns: it
  /// waits for nothing and can be captured into a graph. It allocates nothing, unless keys are
  /// split: then memory in the order of the stream (Kernel::launch). The CPU ignores `stream`.
  ///
  /// A call that is the first of its way compiles it, and others that need it wait. While the
  /// stream is captured nothing is compiled: the call is an error until its way is ready (prepare).
  ///
  /// With a workspace, scratch lies there (getWorkspaceBytes), and nothing is allocated.
  ///
  /// Errors: InvalidArgument; the message starts with the name of the argument or result. On a GPU
  /// also CaptureInProgress, ResourceLimit, OutOfMemory, DriverFailure, and those of compile.
  Status run(LaunchArguments arguments, void *stream = nullptr, Workspace workspace = {}) const;

  /// Compiles what calls with arguments of these shapes take, or what any call may take, so that
  /// none of them waits. No memory is touched; addresses may be null.
  Status prepare(LaunchArguments arguments) const;
  Status prepare() const;
  /// The bytes of workspace that a call with arguments of these shapes takes; 0 for most. Compiles
  /// what such calls take.
  Result<size_t> getWorkspaceBytes(LaunchArguments arguments) const;
  /// The name of the way that calls with arguments of these shapes take; empty: that of most calls.
  Result<std::string> chooseWay(LaunchArguments arguments) const;
  /// The ways in the order in which calls try them; none on the CPU.
  std::vector<WayInfo> getWays() const;

  struct State;
  explicit CompiledFunction(std::shared_ptr<State> state) : state(std::move(state)) {}

private:
  std::shared_ptr<State> state;
};

/// Compiles a function on tensors, written in the `attn` dialect. The same source and options give
/// the same code again: the last 256 functions are kept.
///
/// Errors: InvalidKernel (the message starts with the place, "source:3:7"), InvalidArgument (an
/// option). For CUDA those of Kernel::load too, and that there is no GPU is found first.
Result<CompiledFunction> compile(std::string_view source, const CompileOptions &options = {});
Result<CompiledFunction> compile(const AttentionSpec &spec, const CompileOptions &options = {});

/// Tells a function, in one line, of each way that is compiled or loaded for a call, in the thread
/// of that call; an empty one ends it.
void setLog(std::function<void(std::string_view)> log);

/// Compiles for CUDA and stops before the driver, so that it needs none: PTX and a plan, for
/// Kernel::load here or elsewhere. It has all ways that `options.way` says. Nothing is cached.
Result<KernelImage> emit(std::string_view source, const CompileOptions &options = {});

/// The most threads that calls on the CPU share, the calling one included, from the next call on; 0
/// is the default: the cores that this process may use, and no more than $OMP_NUM_THREADS. Of all
/// functions and threads; `CompileOptions::threads` limits one function further. InvalidArgument
/// above 4096.
Status setNumThreads(unsigned count);
unsigned getNumThreads();

/// Explains as text how a source is compiled. Comments have the device, the schedule and why, the
/// key tiles that each mask visits, and compile times. The IR after the room `until` follows:
/// "problem", "grid" or "online".
///
/// CUDA need not be there. It also has the rooms "tile", "placed", "async", "thread" and "ptx", and
/// more comments: instructions of the PTX, registers where a driver or ptxas can tell, and floors
/// of the time. It lists the ways of the function with their calls, and explains the one that is
/// named; empty: that of most calls.
Result<std::string> explain(std::string_view source, const CompileOptions &options = {},
                            std::string_view until = "online", std::string_view way = "");

/// The keys of a tile of rows, in multiples of a tile of keys but for the last. Some row keeps a
/// key of [begin, end) and none outside, as far as the analysis of masks can tell. All rows keep
/// all of [fullBegin, fullEnd).
struct MaskRange {
  int64_t begin, fullBegin, fullEnd, end;
};

/// Which tiles the mask of a source keeps, as its kernels find it; no kernel is compiled. `source`
/// is a function with one attention. `arguments` are those of a call, without its results. The
/// memory of query, key and value is not read. Other tensors are in host memory, and numbers mean
/// nothing. The result has a range for each tile of `tileRows` rows of (b, h), heads and batches
/// outside.
Result<std::vector<MaskRange>> findMaskRanges(std::string_view source, LaunchArguments arguments,
                                              int64_t tileRows, int64_t tileKeys);

} // namespace attn

#endif // ATTN_COMPILER_H
