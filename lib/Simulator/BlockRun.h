//===- BlockRun.h - one thread block while it runs --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A discrete-event simulation. Every warpgroup is a fiber with a time of its own; copies, products
// and stores in flight are events. The earliest of all goes next, a fiber up to the next
// instruction that others can see. Where the times come from decides what the run is good for:
//
//   * with a seed, they are random, over four orders of magnitude, and some fibers are slow
//     throughout: interleavings that a machine would show once in a long time;
//   * without a seed, they are the times of the cost model: a timeline and a prediction.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_BLOCKRUN_H
#define ATTN_LIB_SIMULATOR_BLOCKRUN_H

#include "lib/Simulator/Barriers.h"
#include "lib/Simulator/GlobalAccesses.h"
#include "lib/Simulator/Program.h"
#include "lib/Simulator/SharedMemory.h"
#include "lib/Simulator/Simulator.h"
#include <map>
#include <queue>

namespace attn::sim {

/// The part of a register tile that one warpgroup holds.
struct TileData {
  int64_t rows = 0, columns = 0;
  /// One of them, by the element type.
  std::vector<float> numbers;
  std::vector<Lane> lanes;

  int64_t size() const { return rows * columns; }
};
using TileRef = std::shared_ptr<TileData>;

/// The value of a register.
struct Value {
  enum class Kind : uint8_t { None, Scalar, Tile, Slot, Shared, Tensor, Barrier, Memory };
  Kind kind = Kind::None;
  /// Shared: place and stage. Tensor: the unit's place. Barrier: array. Memory: argument.
  int32_t index = 0, stage = 0;
  /// Tiles: which registers, so that the registers of a product in flight are recognised.
  uint32_t id = 0;
  /// Scalars; slots: how many uses came before.
  Lane lane{.i = 0};
  /// Null when numbers are off.
  TileRef tile;
};

/// A product that may be in flight.
struct Product {
  const Instruction *instruction = nullptr;
  /// The group it belongs to, counting from 1.
  uint32_t group = 0;
  Value lhs{}, rhs{}, acc{}, kept{};
  uint32_t resultId = 0, accId = 0;
  /// The knowledge of the threads that started it, with their own steps.
  Knowledge started{};
  /// Of a lhs in registers.
  const TileInfo *lhsTile = nullptr;
  TileRef result;
  /// Of a sum in tensor memory: its place, and the barrier that hears of its end.
  int32_t sum = 0, barrier = 0, barrierStage = 0;
  /// Counts products of its fiber.
  unsigned component = 0;
  double end = 0;
  bool isDone = false;
};

/// One warpgroup.
struct Fiber {
  enum class State { Ready, AtBarrier, AtNamedBarrier, Done };

  unsigned index = 0;
  const RoleInfo *role = nullptr;
  State state = State::Ready;
  unsigned pc = 0;
  std::vector<Value> registers;
  double time = 0, slowness = 1;
  Agent leader, rest;
  /// AtBarrier: which barrier, and the reason of the wait.
  int32_t barrier = 0, stage = 0;
  unsigned parity = 0;
  int64_t named = 0;

  // Products: groups committed, groups waited for, the component that counts them.
  uint32_t groupsCommitted = 0, groupsComplete = 0;
  unsigned productComponent = 0;
  std::vector<std::shared_ptr<Product>> products;
  double productsEnd = 0;
  /// When the rest was last done with a wait for a barrier.
  Epoch restWaited{0, 0};
  // Stores of shared tiles by the leader.
  uint32_t stores = 0, storesComplete = 0;
  unsigned storeComponent = 0;
  double storesEnd = 0;
  mlir::Operation *lastStore = nullptr;
  // Gatherings of rows: how many, when the last of them land, the component that counts them, and
  // when the table has answered.
  uint32_t gatherings = 0;
  unsigned gatherComponent = 0;
  double gatheringsEnd = 0, rowsFound = 0;
  // Where the elementwise work since the last reduction stands.
  double issueEnd = 0, expEnd = 0;

  int64_t getRoleWarpgroup() const { return int64_t(index) - role->first; }
  /// Where it stands for the scheduler: elementwise work may run ahead of `time`.
  double getPosition() const { return std::max(time, issueEnd); }
  /// One thread runs it, or thread 0 of the role is here.
  bool isIssuer() const { return getRoleWarpgroup() == 0; }
  llvm::SmallVector<Agent *, 2> getAgents() {
    if (role->isElected)
      return {&leader};
    return {&leader, &rest};
  }
};

class BlockRun {
public:
  BlockRun(const Program &program, llvm::ArrayRef<Argument> arguments, const Options &options,
           const int64_t (&grid)[3], const int64_t (&block)[3], GlobalAccesses *accesses = nullptr);

  llvm::Expected<BlockResult> run();

  /// The same in parts: one event, at the time that `getTime` tells, until it returns false.
  llvm::Expected<bool> advance();
  BlockResult finish();
  double getTime() const { return now; }
  int64_t getWork() const { return result.work; }

private:
  struct Event {
    double time;
    uint64_t order;
    enum class Kind { Copy, Product, Signal, Store, Gather, Share, Arrival } kind;
    /// Of `copies`, `products` or `arrivals`.
    size_t index;
    uint32_t fiber;
    bool operator<(const Event &other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Copy {
    const Instruction *instruction;
    const Memory *memory;
    unsigned argument;
    llvm::SmallVector<int64_t, 5> offsets;
    int32_t place, stage, barrier = 0, barrierStage = 0;
    double begin = 0;
    Epoch epoch{0, 0};
    /// Of what threads copy.
    int64_t rowBegin = 0, rowEnd = 0;
  };

  /// The threads of a warpgroup, at a barrier as soon as what they have gathered is there.
  struct Arrival {
    mlir::Operation *op;
    int32_t barrier, stage;
    Epoch gathered;
  };

  // The scheduler, BlockRun.cpp.
  void setUp();
  llvm::Error step(Fiber &fiber);
  llvm::Error execute(Fiber &fiber, const Instruction &instruction);
  double getNextTime(const Fiber &besides) const;
  void handle(const Event &event);
  void addEvent(double time, Event::Kind kind, size_t index, uint32_t fiber);
  bool report(std::optional<Finding> finding);
  void reportDeadlock();
  void checkEnd();
  void wakeAtBarrier(int32_t barrier, int32_t stage, double time);
  bool isStopped() const { return result.findings.size() >= options.maxFindings; }
  llvm::Error executeControl(Fiber &fiber, const Instruction &instruction);

  // Scalars and register tiles, Tiles.cpp.
  llvm::Error executeScalar(Fiber &fiber, const Instruction &instruction);
  void storeScalar(Fiber &fiber, const Instruction &instruction);
  void vote(Fiber &fiber, const Instruction &instruction);
  llvm::Error executeTile(Fiber &fiber, const Instruction &instruction);
  llvm::Error elementwise(Fiber &fiber, const Instruction &instruction, TileData &to);
  llvm::Error access(Fiber &fiber, const Instruction &instruction, Value &tile, bool isStore);
  bool isTracked(unsigned argument) const { return accesses && accesses->isTracked(argument); }
  /// Begins to remember an access of the fiber's threads to global memory.
  void beginAccess(Fiber &fiber, mlir::Operation *op, GlobalAccesses::Kind kind);
  void touchTile(Fiber &fiber, const Instruction &instruction, unsigned argument,
                 llvm::ArrayRef<int64_t> offsets, GlobalAccesses::Kind kind);
  /// `count` elements along the last dimension from `indices` on, those outside left out.
  void touchRow(unsigned argument, llvm::ArrayRef<int64_t> indices, int64_t count);
  void gather(Fiber &fiber, const Instruction &instruction, TileData &to);
  void scatterAdd(Fiber &fiber, const Instruction &instruction);
  void multiplyRegisters(const Instruction &instruction, const TileData &lhs, const TileData &rhs,
                         TileData &to);
  void setTile(Fiber &fiber, const Instruction &instruction, TileRef tile);
  TileRef makeTile(const TileInfo &info) const;

  // Barriers, Meeting.cpp.
  void executeMeeting(Fiber &fiber, const Instruction &instruction);
  void executeRing(Fiber &fiber, const Instruction &instruction);
  void executeBarrier(Fiber &fiber, const Instruction &instruction);
  Barrier *getBarrier(Fiber &fiber, const Instruction &instruction, unsigned operand,
                      int32_t &stage);
  void wait(Fiber &fiber, const Instruction &instruction);
  bool pass(Fiber &fiber, Barrier &barrier, int64_t wanted, mlir::Operation *op);
  void meet(Fiber &fiber, const Instruction &instruction, int64_t id, int64_t threads, bool waits);

  // Copies and products, Async.cpp.
  void copyAsync(Fiber &fiber, const Instruction &instruction);
  void storeAsync(Fiber &fiber, const Instruction &instruction);
  void copyThreads(Fiber &fiber, const Instruction &instruction);
  void accessByThreads(Fiber &fiber, Access::Kind kind, mlir::Operation *op, const Value &place,
                       Rect rect);
  void storeShared(Fiber &fiber, const Instruction &instruction);
  void loadColumns(Fiber &fiber, const Instruction &instruction);
  void loadShared(Fiber &fiber, const Instruction &instruction);
  void transpose(Fiber &fiber, const Instruction &instruction);
  /// Keeps a product's operands in shared memory from being written.
  void readOperands(Fiber &fiber, const Product &product);
  /// When a product reads its operands, and when it ends.
  std::pair<double, double> time(Fiber &fiber, const Product &product);
  void multiplyAsync(Fiber &fiber, const Instruction &instruction);
  void waitForProducts(Fiber &fiber, const Instruction &instruction);
  /// Rows that a unit reads of a left operand in shared memory, and the operands as matrices.
  Rect getSharedRows(const Product &product, int64_t unit);
  Matrix getSharedLhs(const Product &product, int64_t unit);
  Matrix getRhs(const Product &product);
  void compute(Fiber &fiber, Product &product);
  void checkRegisters(Fiber &fiber, const Instruction &instruction);
  bool checkBox(mlir::Operation *op, const Memory &memory);
  void moveBox(const Copy &copy, bool toShared, int64_t rowBegin, int64_t rowEnd);
  llvm::SmallVector<int64_t, 5> getOffsets(Fiber &fiber, const Instruction &instruction,
                                           size_t first, size_t rank);

  /// Adds what a box or tile from `offsets` on has inside of an argument to the traffic.
  void countTraffic(unsigned argument, llvm::ArrayRef<int64_t> offsets, int64_t rows,
                    int64_t columns);
  void touchBox(Fiber &fiber, const Copy &copy, GlobalAccesses::Kind kind, int64_t rowBegin,
                int64_t rowEnd, std::optional<Epoch> epoch);

  // Rows that threads gather, Gathering.cpp.
  static void takeShare(const Fiber &fiber, Copy &copy, int64_t rows);
  void gatherAsync(Fiber &fiber, const Instruction &instruction);
  void arriveLanded(Fiber &fiber, const Instruction &instruction);
  void copyShare(Fiber &fiber, const Instruction &instruction);
  void waitForShares(Fiber &fiber, const Instruction &instruction);
  void land(const Arrival &arrival, double time);

  // Sums in tensor memory, TensorMemory.cpp.
  void setUpTensorMemory();
  void allocTensor(Fiber &fiber, const Instruction &instruction);
  void deallocTensor(Fiber &fiber, const Instruction &instruction);
  void placeTensor(Fiber &fiber, const Instruction &instruction);
  void accessTensor(Fiber &fiber, Access::Kind kind, mlir::Operation *op, int32_t place);
  void loadTensor(Fiber &fiber, const Instruction &instruction);
  void storeTensor(Fiber &fiber, const Instruction &instruction);
  void scaleTensor(Fiber &fiber, const Instruction &instruction);
  void multiplyTensor(Fiber &fiber, const Instruction &instruction);
  void computeTensor(Product &product, int64_t unit);
  void signal(Product &product, double time);
  void checkTensorEnd();
  /// Moving so many bytes between registers and tensor memory.
  void moveTensor(Fiber &fiber, double bytes);

  // Rows that products do not read, Clearing.cpp.
  void markRead(Fiber &fiber, const Instruction &instruction);
  void readMarks(Fiber &fiber, const Instruction &instruction, const Value &source);
  void clearUnread(Fiber &fiber, const Instruction &instruction);

  // Time.
  /// The time of work that takes `cycles`; any time when times are random.
  double pickTime(Fiber &fiber, double cycles);
  /// When a copy into a stage of the place that the fiber starts now has landed: at a random time,
  /// or at the rate of the memory.
  double timeCopy(Fiber &fiber, const Copy &copy, const Place &place);
  double pickRandom();
  /// Uses a resource from `from` on; the time when it is done with.
  double use(Resource resource, double from, double cycles);
  void work(Fiber &fiber, const Instruction &instruction);
  void settle(Fiber &fiber, mlir::Operation *op);
  void record(const std::string &track, llvm::StringRef name, double begin, double end,
              mlir::Operation *op);
  std::string getName(const Fiber &fiber) const;
  uint64_t nextRandom();

  const Program &program;
  llvm::ArrayRef<Argument> arguments;
  const Options &options;
  /// Of the grid; null if nobody looks for races in global memory.
  GlobalAccesses *accesses;
  int64_t grid[3], block[3];
  bool isRandom;
  uint64_t randomState;

  std::vector<Fiber> fibers;
  SharedMemory shared, tensor{/*isTensorMemory=*/true};
  /// The columns that were claimed, when, and by which op.
  int64_t tensorColumns = 0;
  Epoch tensorEpoch{0, 0};
  mlir::Operation *tensorOp = nullptr;
  std::vector<std::vector<Barrier>> barriers;
  NamedBarrier named[16];
  /// The columns that a warpgroup of a role has marked as read in a place.
  std::map<std::pair<int32_t, int64_t>, llvm::BitVector> marks;
  std::vector<Copy> copies;
  std::vector<std::shared_ptr<Product>> products;
  std::vector<Arrival> arrivals;
  std::priority_queue<Event> events;
  uint64_t numEvents = 0;
  uint32_t numIds = 0;
  double free[kNumResources] = {};
  double now = 0;
  std::vector<Lane> scratch[4];
  BlockResult result;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_BLOCKRUN_H
