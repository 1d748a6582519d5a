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
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace attn {

/// The target of a program, and the options that override the schedule.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("what the schedule is for: cpu or cuda"),
                             llvm::cl::init("cpu")};
  Option<int64_t> lanes{*this, "lanes",
                        llvm::cl::desc("f32 lanes of the CPU's vectors: 4, 8 or 16"),
                        llvm::cl::init(16)};
  Option<bool> bf16Dot{*this, "bf16-dot",
                       llvm::cl::desc("the CPU multiplies pairs of bf16 (AVX512-BF16)"),
                       llvm::cl::init(false)};
  Option<int64_t> blockM{*this, "block-m",
                         llvm::cl::desc("query rows of a block; 0: the target's rule"),
                         llvm::cl::init(0)};
  Option<int64_t> blockN{*this, "block-n", llvm::cl::desc("keys of a step; 0: the target's rule"),
                         llvm::cl::init(0)};
  Option<int64_t> splits{*this, "splits",
                         llvm::cl::desc("parts the keys of a block are split into"),
                         llvm::cl::init(1)};
  Option<int64_t> stages{
      *this, "stages",
      llvm::cl::desc("tiles of keys, and of values, in flight on a GPU; 0: the target's rule"),
      llvm::cl::init(0)};
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
  Option<std::string> way{
      *this, "way",
      llvm::cl::desc("sizes of which sequences, on a GPU: short, long, few (rows with "
                     "many keys), or auto for a kernel each where the target's rule has two"),
      llvm::cl::init("auto")};
  Option<std::string> stay{
      *this, "stay",
      llvm::cl::desc("whether blocks stay on a GPU: true, false, or auto for the target's rule"),
      llvm::cl::init("auto")};
  Option<bool> recompute{
      *this, "recompute",
      llvm::cl::desc("whether blocks on a GPU with a loop around loops, as those that stay, "
                     "compute in each of its turns what those inside do not read"),
      llvm::cl::init(false)};
  Option<bool> hold{
      *this, "hold",
      llvm::cl::desc("whether blocks on a GPU hold a stage of keys until the first weights of its "
                     "step are there"),
      llvm::cl::init(false)};
  Option<bool> apart{*this, "apart",
                     llvm::cl::desc("whether consumers of a block on a GPU begin apart, each with "
                                    "the first tile of keys that its rows need"),
                     llvm::cl::init(false)};
  Option<int64_t> keep{*this, "keep",
                       llvm::cl::desc("columns of the query that consumers on a GPU keep in "
                                      "registers; -1: the target's rule"),
                       llvm::cl::init(-1)};
  Option<int64_t> slack{
      *this, "slack",
      llvm::cl::desc("by which factor 2^slack a maximum may lag on a GPU, from 0 to 16; -1: every "
                     "step scales; -2: the target's rule"),
      llvm::cl::init(-2)};
};

/// Copies the options of the schedule from one struct to another with the same names.
template <typename From, typename To> void copyScheduleOptions(const From &from, To &to) {
  to.blockM = from.blockM;
  to.blockN = from.blockN;
  to.splits = from.splits;
  to.fused = from.fused;
}

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
