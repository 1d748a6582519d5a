//===- VirtualCache.h - keys and values that grow where they lie ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_VIRTUALCACHE_H
#define ATTN_VIRTUALCACHE_H

#include "attn/Runtime.h"

namespace attn {

/// The keys and values of a batch of sequences.
struct VirtualCacheSpec {
  int64_t sequences = 0;
  /// Of one sequence at most.
  int64_t tokens = 0;
  int64_t layers = 0;
  int64_t keyHeads = 0;
  int64_t headDim = 0;
  /// 0: headDim.
  int64_t valueDim = 0;
  DataType type = DataType::BF16;
  /// The arrangement in memory.
  enum class Order : uint8_t {
    /// The tokens of one layer: a piece of memory holds many tokens of the keys, or of the values,
    /// of one layer and one sequence. Kernels read it at full speed.
    Layers,
    /// The layers of one token: a piece of memory holds few tokens, of all layers, keys and values.
    /// Less memory is left over for each sequence, and rows are far apart.
    Tokens
  };
  Order order = Order::Layers;
  /// By the driver's number; -1 is the host's memory.
  int device = -1;
};

/// Keys and values of sequences that grow. Addresses are reserved for the longest sequences, and
/// memory is mapped to them only as far as sequences have grown. Kernels see dense tensors (B, Hkv,
/// N, D) whose addresses never change, so that captured graphs stay valid.
///
/// Reading where nothing is mapped is a fault, not a wrong number. A tile of keys may reach
/// kAheadTokens past the last key that a row keeps, so that many more have memory than a sequence
/// was grown to. The lengths that kernels are given must not be above these.
///
/// May be called from any number of threads at once. Nothing here can be captured.
class VirtualCache {
public:
  static constexpr int64_t kAheadTokens = 256;

  /// Reserves the addresses; no memory yet.
  ///
  /// Errors: InvalidArgument, ResourceLimit (addresses), NoDriver, NoDevice, UnsupportedDevice (no
  /// virtual memory).
  static Result<VirtualCache> create(const VirtualCacheSpec &spec);

  VirtualCache(VirtualCache &&) noexcept;
  VirtualCache &operator=(VirtualCache &&) noexcept;
  /// Kernels that read the cache must have ended.
  ~VirtualCache();

  /// Gives the first `tokens` of a sequence memory, where they have none. Tokens that
  /// are there stay where they are, so kernels may run meanwhile. New memory holds anything.
  ///
  /// Errors: InvalidArgument, OutOfMemory: then the sequence is as long as it was.
  Status grow(int64_t sequence, int64_t tokens);

  /// Lets an empty sequence begin with the memory of the first `tokens` of another. Returns how
  /// many of them whole pieces of memory hold: 0 to `tokens`. Nobody may write to these any more;
  /// the rest is the caller's to copy.
  Result<int64_t> share(int64_t from, int64_t to, int64_t tokens);

  /// Ends a sequence: it is empty from now on, and its memory serves others as soon as `stream` has
  /// passed (a CUstream or cudaStream_t; of no meaning to the host).
  Status release(int64_t sequence, void *stream = nullptr);

  /// Gives memory back that no sequence has.
  Status trim();

  /// (B, Hkv, N, D) of a layer. Shapes and strides live as long as the cache.
  Result<TensorView> getKeys(int64_t layer) const;
  Result<TensorView> getValues(int64_t layer) const;

  /// How many tokens of a sequence have memory by `grow` or `share`; -1 where there is no such
  /// sequence.
  int64_t getTokens(int64_t sequence) const;
  /// Bytes of memory: those of sequences, and those that wait for one.
  int64_t getBytes() const;
  /// Tokens of one sequence that a piece of memory holds, of the keys of one layer or, in the order
  /// of tokens, of all that a token has. At least 1.
  int64_t getPieceTokens() const;
  const VirtualCacheSpec &getSpec() const;

private:
  struct State;
  explicit VirtualCache(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace attn

#endif // ATTN_VIRTUALCACHE_H
