//===- KernelPlan.h - how to launch a compiled kernel --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler's half of a launch: PTX says what the kernel does, the plan says what it is given.
// The runtime needs nothing else, and in particular no MLIR: it evaluates the plan on the tensors
// of a call.
//
// Words: an *argument* is what the user passes to the function that was compiled (a tensor or a
// scalar, numbered from 0 in that function's order). A *parameter* is what the kernel's PTX
// signature lists; each is made from one argument. *Scratch* is what kernels of one launch leave
// for later ones: tensors that the runtime adds to the arguments, numbered after them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_KERNELPLAN_H
#define ATTN_LIB_PLAN_KERNELPLAN_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace attn {

/// A TMA descriptor over one tensor argument (cuTensorMapEncodeTiled): 128 bytes, passed by value.
/// Global address, sizes and strides come from the argument at each call; interleave is none,
/// element strides are 1, what lies outside the tensor reads as zero, L2 promotion is 128 bytes.
struct TensorMap {
  /// bf16, f16, f32, f8E4M3FN or f8E5M2: the argument's element type.
  std::string elementType;
  /// Dimensions of the argument from the innermost to the outermost; the first must have stride 1.
  /// One to five of them. The other strides in bytes must be multiples of 16, and so must the
  /// address. Dimensions of the argument that are not named here have size 1.
  std::vector<unsigned> dims;
  /// The box of one copy in elements, in the order of `dims`.
  std::vector<unsigned> box;
  /// Bytes of the shared-memory swizzle: 128, 64, 32, or 0 for none.
  unsigned swizzle = 128;

  bool operator==(const TensorMap &) const = default;
};

/// One kernel parameter, in the order of the PTX signature.
struct KernelParameter {
  enum class Kind {
    /// A tensor map of the argument: 128 bytes, aligned to 64.
    TensorMap,
    /// The address of the argument's first element: 8 bytes.
    Pointer,
    /// The size of the argument's dimension `dim`, as `type`.
    Size,
    /// The stride of the argument's dimension `dim` in elements, as `type`.
    Stride,
    /// The argument itself, a scalar, as `type`.
    Scalar
  };
  Kind kind = Kind::Pointer;
  /// The argument it is made from.
  unsigned argument = 0;
  /// Dimension of the argument, for Size and Stride.
  unsigned dim = 0;
  /// i32, i64 or f32, for Size, Stride and Scalar. A value that does not fit i32 is the caller's
  /// error to report.
  std::string type;
  /// For TensorMap.
  TensorMap map;

  bool operator==(const KernelParameter &) const = default;
};

/// A factor of the size of a grid or of scratch, which a call or the device decides. It is one of:
///
/// * ceil((size of the argument's dimension - less) * multiplier / divisor) * unit;
/// * a constant;
/// * a number for each multiprocessor;
/// * parts that fill the multiprocessors, or slots for parts that are dealt;
/// * the GB that memory moves in a second.
struct SizeFactor {
  static constexpr int kConstant = -1, kMultiprocessors = -2, kParts = -3, kMemoryRate = -4,
                       kSlots = -5;
  /// kConstant: the factor is `dim`. kMultiprocessors: it is `dim` times those of the device but
  /// `less`, or times 1.
  /// kParts: at most `dim`, and at most the first of `of`; the others are the blocks that parts
  /// multiply (countParts). `divisor` is how many blocks the device runs at a time.
  /// kSlots: the same, for parts that go to sequences by their lengths (countSlots); the second of
  /// `of` is the number of sequences.
  int argument = kConstant;
  unsigned dim = 1;
  unsigned divisor = 1;
  unsigned multiplier = 1;
  unsigned unit = 1;
  // Those who name other members leave it out.
  std::vector<SizeFactor> of = {}; // NOLINT(readability-redundant-member-init)
  unsigned less = 0;

  bool isCounted() const { return argument == kParts || argument == kSlots; }

  bool operator==(const SizeFactor &) const = default;
};

/// A row-major tensor that lives from the kernel that fills it to the last kernel of the launch.
struct ScratchTensor {
  /// Its number: scratch comes after the function's arguments, without gaps.
  unsigned argument = 0;
  /// As in TensorMap.
  std::string elementType;
  /// The size of each dimension.
  std::vector<SizeFactor> shape;
  /// Whether it starts as zeros in each launch.
  bool isZero = false;

  bool operator==(const ScratchTensor &) const = default;
};

/// The fewest parts, up to `most`, with which `blocks` leave at most 1/16 of the places of their
/// last round idle, or those that leave the fewest idle.
int64_t countParts(int64_t blocks, int64_t places, int64_t most);

/// Slots for the parts of `sequences`, which get parts by their lengths (attn-split-kv): one of
/// average length gets as many as keep the device busy for some rounds, up to `most`. No part is
/// longer than a part of that one, so that each sequence may need one more.
int64_t countSlots(int64_t sequences, int64_t blocks, int64_t places, int64_t most);

/// A condition on a call: the size of an argument's dimension, the number of parts, or the rate of
/// memory, divided by the factor `per` (up), is from `least` to `most`.
struct ExtentRange {
  SizeFactor size = {};
  int64_t least = 0, most = 0;
  SizeFactor per = {};

  bool operator==(const ExtentRange &) const = default;
};

/// Which calls take a way: those for which all ranges of one of the conditions hold, or, without
/// conditions, all calls.
using WayConditions = std::vector<std::vector<ExtentRange>>;

/// Everything a launch of one kernel needs apart from the arguments and the stream.
struct KernelPlan {
  /// The entry's name in the PTX.
  std::string name;
  /// The architecture the PTX was made for, e.g. sm_90a.
  std::string target;
  std::vector<KernelParameter> parameters;
  /// x, y, z; each the product of its factors (none: 1). If any is 0 there is nothing to launch.
  std::array<std::vector<SizeFactor>, 3> grid;
  /// Threads of a block: x, y, z.
  std::array<unsigned, 3> block = {1, 1, 1};
  /// Blocks of a cluster: x, y, z. All 1: launched without clusters.
  std::array<unsigned, 3> cluster = {1, 1, 1};
  /// Dynamic shared memory in bytes; above 48 KiB the function's MAX_DYNAMIC_SHARED_SIZE_BYTES must
  /// be raised first.
  uint64_t dynamicSharedBytes = 0;
  /// Whether the kernel may start before the one before it in the stream ends (programmatic
  /// dependent launch). It then waits (griddepcontrol.wait) before it touches memory of others.
  bool isProgrammatic = false;
  /// Scratch that this kernel is the first to use.
  std::vector<ScratchTensor> scratch;
  /// The name of the way of running the function that it is part of, and the calls that take it.
  /// Kernels in a row with the same name are one way. A call takes the first way that is for it;
  /// the last one is for all calls, and its name is empty.
  std::string way;
  WayConditions when;

  /// Whether it makes nothing but integers for later kernels of its launch: lists of tiles, what
  /// searches find, parts of keys. They follow from lengths and from what masks read, so that calls
  /// with the same of these may share them.
  bool isPlanning() const;

  bool operator==(const KernelPlan &) const = default;
};

/// A way whose kernels are compiled when a call first takes it.
struct WayPlan {
  std::string name;
  WayConditions when;

  bool operator==(const WayPlan &) const = default;
};

/// Of kernels in a row, those of the first way.
template <typename Kernels> Kernels takeWay(Kernels kernels) {
  return kernels.take_while(
      [&](const KernelPlan &kernel) { return kernel.way == kernels.front().way; });
}

} // namespace attn

#endif // ATTN_LIB_PLAN_KERNELPLAN_H
