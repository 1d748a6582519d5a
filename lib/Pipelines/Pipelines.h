//===- Pipelines.h - the table of contents of the compiler -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_PIPELINES_H
#define ATTN_LIB_PIPELINES_PIPELINES_H

#include "lib/Pipelines/VisitDoor.h"
#include "lib/Rooms/Rooms.h"
#include "lib/Schedule/ScheduleOptions.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace attn {

/// The target of a program, and the options that override the schedule.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("what the program is for: cpu, cuda, or a kind of GPU "
                                            "by its name in lib/Machine"),
                             llvm::cl::init("cpu")};
  Option<int64_t> lanes{*this, "lanes",
                        llvm::cl::desc("f32 lanes of the CPU's vectors: 4, 8 or 16"),
                        llvm::cl::init(16)};
  Option<bool> bf16Dot{*this, "bf16-dot",
                       llvm::cl::desc("the CPU multiplies pairs of bf16 (AVX512-BF16)"),
                       llvm::cl::init(false)};
  /// The words that somebody has said; the target's rule has the others.
  ScheduleOptions<mlir::detail::PassOptions> schedule{*this};
  Option<bool> fused{*this, "fused",
                     llvm::cl::desc("blocks of keys on a GPU add to gradients of queries, in any "
                                    "order, where there are such blocks"),
                     llvm::cl::init(false)};
  Option<int64_t> pack{*this, "pack",
                       llvm::cl::desc("slots for the query heads of a key head, on a GPU; 0: none"),
                       llvm::cl::init(0)};
  Option<int64_t> search{*this, "search",
                         llvm::cl::desc("rows of the calls that a search of sizes times on a GPU: "
                                        "what models rule out is refused; 0: nothing is"),
                         llvm::cl::init(0)};
  Option<std::string> way{*this, "way",
                          llvm::cl::desc("ways of calls on a GPU: auto (all of the rule), lengths "
                                         "(short and other sequences), or one for all calls: "
                                         "short, long, few, narrow or groups"),
                          llvm::cl::init("lengths")};
};

/// The rooms from `first` to `last`, both included, on the way to the target of `options`. The
/// program comes from the room before `first`; each door is shown to `visit`.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options, Room first, Room last,
                   const DoorVisitor &visit = nullptr);

/// All rooms down to `last`.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options, Room last,
                   const DoorVisitor &visit = nullptr);

/// problem -> linalg in f64, one block of rows at a time: the oracle. `blockRows` bounds its memory
/// to blockRows * N * 8 bytes for each thread; 0 leaves attention on whole tensors.
void buildToReferencePipeline(mlir::OpPassManager &pm, int64_t blockRows);

/// The oracle -> the LLVM dialect of the CPU, by loops over scalars.
void buildReferenceToLLVMPipeline(mlir::OpPassManager &pm);

/// Stretches of the road by name, and attn-to-reference.
void registerPipelines();
void registerReferencePipeline();

} // namespace attn

#endif // ATTN_LIB_PIPELINES_PIPELINES_H
