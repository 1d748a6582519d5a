//===- Execution.cpp - one kernel against the f64 reference ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Bounds: f32, and the logarithms of any type, 2e-5; f16 and bf16 twice the error of PyTorch in
// that type on such inputs (bench/results/cpu-error-bounds.json and gpu-error-bounds.json).
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "lib/Support/Compare.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

namespace attn::test {

double getBound(const Problem &problem, bool isMasked, const Extents &e) {
  // Weights have three bits of mantissa where products multiply 8 bits.
  if (!problem.narrow.empty() && getOptions().device->roundsNarrowWeights())
    return kNarrowBound;
  if (problem.type == "f32")
    return kF32Bound;
  TestDevice::Errors errors = getOptions().device->getErrors(problem.type);
  return 2 * (!isMasked                   ? errors.full
              : std::max(e.m, e.n) > 2048 ? errors.maskedLong
                                          : errors.masked);
}

bool HopperDevice::takesNarrow() const {
  const std::string &target = getOptions().target;
  const Machine *machine = target.empty() ? &getDefaultMachine() : findMachine(target);
  return machine && machine->product.multipliesNarrow;
}

double getShareOfZeros(Array &reference) {
  if (!reference.size())
    return 0;
  llvm::ArrayRef<double> values(reference.dataAs<double>(), reference.size());
  return double(llvm::count(values, 0.0)) / values.size();
}

static std::vector<Array> allocateResults(ElementKind kind, const Problem &p, const Extents &e,
                                          Memory memory, ElementKind lseKind) {
  std::vector<Array> results;
  results.push_back(allocate(kind, {e.batch, e.heads, e.m, p.dv}, memory));
  for (int i = 0; i < p.withLse + p.withLow; ++i)
    results.push_back(allocate(lseKind, {e.batch, e.heads, e.m}));
  for (Array &result : results)
    result.poison();
  return results;
}

std::vector<Array> callReference(CompiledKernel &reference, std::vector<Input> &inputs,
                                 const Problem &problem, const Extents &extents) {
  std::vector<Array> results =
      allocateResults(ElementKind::F64, problem, extents, Memory::RowMajor, ElementKind::F64);
  call(reference, inputs, results);
  return results;
}

static std::string describe(const Variant &variant, const Problem &problem) {
  return llvm::formatv("{0} {1}{9}{10} D={2} Dv={3} block={4}x{5} splits={6} way={7} cpu={8}",
                       variant.name, problem.type, problem.d, problem.dv, problem.blockM,
                       problem.blockN, problem.splits, problem.way, problem.cpu, problem.narrow,
                       problem.isWide ? " wide" : "");
}

static std::string describe(const Extents &e, uint64_t seed) {
  return llvm::formatv("B={0} H={1} Hkv={2} M={3} N={4} seed={5}", e.batch, e.heads, e.keyHeads,
                       e.m, e.n, seed);
}

Execution::Kernels Execution::compile(const Variant &variant, const Problem &problem) {
  std::string source = makeSource(variant, problem);
  mlir::OwningOpRef<mlir::ModuleOp> module = sources.parse(source);
  if (!module)
    return {};
  llvm::Expected<std::unique_ptr<TestKernel>> kernel =
      getOptions().device->compile(*module, problem);
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError()) << "\n" << source;
    return {};
  }
  ++numCompiles;
  if (!*kernel)
    return {};
  Problem any = problem;
  any.extents = std::nullopt;
  std::unique_ptr<CompiledKernel> reference = sources.define(makeSource(variant, any));
  if (!reference)
    return {};
  return {std::move(module), std::move(*kernel), std::move(reference)};
}

void Execution::check(const Variant &variant, const Problem &problem,
                      const std::vector<Extents> &extents) {
  SCOPED_TRACE(describe(variant, problem));
  Kernels kernels = compile(variant, problem);
  if (!kernels.device)
    return;
  bool failedBefore = testing::Test::HasFailure();
  for (const Extents &e : extents)
    numMismatches += !run(variant, problem, e, *kernels.device, *kernels.reference);
  if (testing::Test::HasFailure() && !failedBefore)
    ADD_FAILURE() << makeSource(variant, problem);
}

//===----------------------------------------------------------------------------------------===//
// Dropped keys
//===----------------------------------------------------------------------------------------===//

/// For each key of each batch and key head, whether some row keeps it: the reference's weights,
/// which values with a single 1 in each column show, are not 0.
static std::vector<bool> findKept(CompiledKernel &reference, const Variant &variant,
                                  const Problem &p, const Extents &e, uint64_t seed) {
  std::vector<Input> inputs = makeInputs(variant, p, e, seed);
  std::vector<bool> kept(e.batch * e.keyHeads * e.n);
  int64_t group = e.heads / e.keyHeads;
  for (int64_t first = 0; first < e.n; first += p.dv) {
    Array &value = inputs[2].array;
    value.fill(0);
    int64_t count = std::min(p.dv, e.n - first);
    for (int64_t head = 0; head < e.batch * e.keyHeads; ++head)
      for (int64_t i = 0; i < count; ++i)
        value.set((head * e.n + first + i) * p.dv + i, 1);
    Array weights = std::move(callReference(reference, inputs, p, e).front());
    for (int64_t row = 0; row < e.batch * e.heads * e.m; ++row)
      for (int64_t i = 0; i < count; ++i)
        if (weights.get(row * p.dv + i) != 0)
          kept[row / e.m / group * e.n + first + i] = true;
  }
  return kept;
}

/// Zeros, or what is no number, in the keys and values that no row keeps.
static void fillDropped(std::vector<Input> &inputs, const std::vector<bool> &kept, bool isZero) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double garbage[] = {std::nan(""), infinity, -infinity};
  for (Array *array : {&inputs[1].array, &inputs[2].array}) {
    int64_t columns = array->getShape().back();
    for (size_t key = 0; key < kept.size(); ++key)
      for (int64_t i = 0; i < columns && !kept[key]; ++i)
        array->set(key * columns + i, isZero ? 0 : garbage[(key + i) % 3]);
  }
}

void Execution::checkDroppedKeys(const Variant &variant, const Problem &p,
                                 const std::vector<Extents> &extents) {
  SCOPED_TRACE(describe(variant, p));
  // Where all factors of a key are 0, its weights do not show: it is kept all the same.
  if (variant.hasFactors())
    return;
  Kernels kernels = compile(variant, p);
  if (!kernels.device)
    return;
  for (const Extents &e : extents) {
    uint64_t inputSeed = seed + 1000 * uint64_t(++numRuns);
    SCOPED_TRACE(describe(e, inputSeed));
    std::vector<bool> kept = findKept(*kernels.reference, variant, p, e, inputSeed);
    numDropped += llvm::count(kept, false);
    std::vector<Array> results[2];
    for (bool isZero : {false, true}) {
      std::vector<Input> inputs = makeInputs(variant, p, e, inputSeed);
      fillDropped(inputs, kept, isZero);
      results[isZero] =
          allocateResults(getElementKind(p.getResultType()), p, e, p.memory, ElementKind::F32);
      if (llvm::Error error = kernels.device->run(inputs, results[isZero], p.memory, inputSeed)) {
        ADD_FAILURE() << llvm::toString(std::move(error));
        return;
      }
    }
    for (auto [i, garbage, zeros] : llvm::enumerate(results[0], results[1]))
      EXPECT_EQ(std::memcmp(garbage.data(), zeros.data(), zeros.getByteCount()), 0)
          << "result " << i << " depends on keys that no row keeps: max relative "
          << llvm::cantFail(compare(garbage, zeros)).maxRelative << ", "
          << llvm::cantFail(compare(garbage, zeros)).numNaN << " NaN";
  }
}

//===----------------------------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------------------------===//

/// Lets entries whose keys nobody keeps be no pages, and pages that no other entry names NaN.
/// Returns how many entries.
static int64_t makeHoles(std::vector<Input> &inputs, const std::vector<bool> &kept,
                         const Problem &p, const Extents &e) {
  Array &table = inputs[3].array;
  int64_t entries = e.n / p.page, pages = inputs[1].array.getShape()[0], numHoles = 0;
  const int64_t garbage[] = {-1, pages, 2147480000, std::numeric_limits<int32_t>::min(),
                             p.wideTable ? (int64_t(1) << 32) + 1 : -7};
  std::vector<bool> isNamed(pages);
  for (int64_t b = 0; b < e.batch; ++b)
    for (int64_t j = 0; j < entries; ++j) {
      bool isKept = false;
      for (int64_t head = b * e.keyHeads; head < (b + 1) * e.keyHeads; ++head)
        for (int64_t n = j * p.page; n < (j + 1) * p.page; ++n)
          isKept |= kept[head * e.n + n];
      if (isKept)
        isNamed[int64_t(table.get(b * entries + j))] = true;
      else
        table.set(b * entries + j, double(garbage[numHoles++ % 5]));
    }
  for (int i : {1, 2}) {
    Array &pool = inputs[i].array;
    int64_t size = pages ? pool.size() / pages : 0;
    for (int64_t page = 0; page < pages; ++page)
      for (int64_t at = 0; at < size && !isNamed[page]; ++at)
        pool.set(page * size + at, std::nan(""));
  }
  return numHoles;
}

/// The keys and values of the pages that the table names, zeros where it names none.
static std::vector<Input> gatherPages(std::vector<Input> &paged, const Problem &p,
                                      const Extents &e) {
  std::vector<Input> inputs;
  Array &table = paged[3].array;
  int64_t entries = e.n / p.page;
  for (size_t i = 0; i < paged.size(); ++i) {
    if (i == 3)
      continue;
    Array &from = paged[i].array;
    if (i != 1 && i != 2) {
      Input &copy = inputs.emplace_back();
      copy.isScalar = paged[i].isScalar;
      copy.scalar = paged[i].scalar;
      if (copy.isScalar)
        continue;
      copy.array = llvm::cantFail(Array::allocate(from.getKind(), from.getShape()));
      for (int64_t at = 0; at < from.size(); ++at)
        copy.array.set(at, from.get(at));
      continue;
    }
    int64_t pages = from.getShape()[0], columns = from.getShape()[3];
    Array &to = inputs.emplace_back().array;
    to = llvm::cantFail(Array::allocate(from.getKind(), {e.batch, e.keyHeads, e.n, columns}));
    to.fill(0);
    for (int64_t row = 0; row < e.batch * e.keyHeads * e.n; ++row) {
      int64_t n = row % e.n, head = row / e.n % e.keyHeads, b = row / e.n / e.keyHeads;
      double page = table.get(b * entries + n / p.page);
      if (page < 0 || page >= double(pages))
        continue;
      int64_t at = ((int64_t(page) * p.page + n % p.page) * e.keyHeads + head) * columns;
      for (int64_t d = 0; d < columns; ++d)
        to.set(row * columns + d, from.get(at + d));
    }
  }
  return inputs;
}

/// The same keys and values in pages that lie in order, of which each sequence has its own.
static std::vector<Input> putInOrder(std::vector<Input> gathered, const Problem &p,
                                     const Extents &e) {
  int64_t entries = e.n / p.page, pages = e.batch * entries;
  for (int i : {1, 2}) {
    Array from = std::move(gathered[i].array);
    int64_t columns = from.getShape()[3];
    Array &pool = gathered[i].array;
    pool = llvm::cantFail(Array::allocate(from.getKind(), {pages, p.page, e.keyHeads, columns}));
    for (int64_t row = 0; row < pages * p.page * e.keyHeads; ++row) {
      int64_t head = row % e.keyHeads, at = row / e.keyHeads, b = at / std::max<int64_t>(e.n, 1);
      for (int64_t d = 0; d < columns; ++d)
        pool.set(row * columns + d,
                 from.get(((b * e.keyHeads + head) * e.n + at % e.n) * columns + d));
    }
  }
  Input table;
  table.array = llvm::cantFail(
      Array::allocate(p.wideTable ? ElementKind::I64 : ElementKind::I32, {e.batch, entries}));
  for (int64_t entry = 0; entry < pages; ++entry)
    table.array.set(entry, double(entry));
  gathered.insert(gathered.begin() + 3, std::move(table));
  return gathered;
}

void Execution::checkPaged(const Variant &variant, const Problem &p,
                           const std::vector<Extents> &extents) {
  SCOPED_TRACE(describe(variant, p) + " page=" + std::to_string(p.page));
  Problem dense = p;
  dense.page = 0;
  dense.memory = Memory::RowMajor;
  Kernels paged = compile(variant, p), whole = compile(variant, dense);
  if (!paged.device || !whole.device)
    return;
  for (const Extents &e : extents) {
    uint64_t inputSeed = seed + 1000 * uint64_t(++numRuns);
    SCOPED_TRACE(describe(e, inputSeed));
    std::vector<Input> inputs = makeInputs(variant, p, e, inputSeed);
    numHoles += makeHoles(inputs, findKept(*whole.reference, variant, dense, e, inputSeed), p, e);
    std::vector<Input> gathered = gatherPages(inputs, p, e);
    // Where a mask ends keys, a GPU's tiles of pages begin elsewhere than others do, and its rule
    // fits tiles to pages. So do parts of what a mask keeps, on all devices. Last bits show both.
    // There pages in any order have the bits of pages in order.
    bool isOnCPU = getOptions().device->getColumnMultiple() == 1;
    bool isDense = isOnCPU ? p.splits == 1 || variant.text.empty()
                           : variant.text.empty() && p.blockN && !p.slots;
    TestKernel &other = isDense ? *whole.device : *paged.device;
    if (!isDense)
      gathered = putInOrder(std::move(gathered), p, e);
    std::vector<Array> results[2];
    for (bool isPaged : {false, true}) {
      results[isPaged] = allocateResults(getElementKind(p.getResultType()), p, e, Memory::RowMajor,
                                         ElementKind::F32);
      if (llvm::Error error = isPaged ? paged.device->run(inputs, results[1], p.memory, inputSeed)
                                      : other.run(gathered, results[0], dense.memory, inputSeed)) {
        ADD_FAILURE() << llvm::toString(std::move(error)) << "\n" << makeSource(variant, p);
        return;
      }
    }
    std::vector<Array> expected = callReference(*paged.reference, inputs, p, e);
    for (auto [i, ofPages, ofWhole] : llvm::enumerate(results[1], results[0])) {
      EXPECT_EQ(std::memcmp(ofPages.data(), ofWhole.data(), ofPages.getByteCount()), 0)
          << "result " << i << " of pages is another one: max relative "
          << llvm::cantFail(compare(ofPages, ofWhole)).maxRelative << ", "
          << llvm::cantFail(compare(ofPages, ofWhole)).numNaN << " NaN\n"
          << makeSource(variant, p);
      if (i == 2)
        continue;
      double bound = i ? kF32Bound
                       : getBound(p, !variant.text.empty(), e) /
                             std::sqrt(std::max(1 - getShareOfZeros(expected[0]), 1e-6));
      if (llvm::any_of(variant.captures, [](auto &c) { return c.kind == Capture::Slopes; }))
        bound += 0x1p-22 * double(std::max(e.m, e.n));
      Comparison c = llvm::cantFail(compare(ofPages, expected[i]));
      EXPECT_TRUE(c.numUnwritten == 0 && c.numNaN == 0 && c.isWithin(bound))
          << "result " << i << ": max relative " << c.maxRelative << ", bound " << bound << ", "
          << c.numNaN << " NaN";
      numMismatches += !c.isWithin(bound);
    }
  }
}

//===----------------------------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------------------------===//

/// s17: what the lse that the device stored lost to rounding, of base 2; 0 where it is infinite.
/// Together they are as near to the reference as f32 lets the greatest score of a row be.
static bool isLow(std::vector<Array> &results, std::vector<Array> &expected) {
  bool isRight = true;
  for (int64_t row = 0; row < expected[1].size(); ++row) {
    auto lse = float(results[1].get(row));
    double exact = expected[1].get(row) * double(kLog2e), low = results[2].get(row);
    double wanted = std::isfinite(lse) ? exact - double(lse * kLog2e) : 0;
    double bound = 2e-6 + (std::isfinite(lse) ? 0x1p-22 * std::abs(exact) : 0);
    EXPECT_LE(std::abs(low - wanted), bound)
        << "lse_low of row " << row << ", whose lse is " << lse;
    isRight &= std::abs(low - wanted) <= bound;
  }
  return isRight;
}

bool Execution::run(const Variant &variant, const Problem &p, const Extents &e, TestKernel &kernel,
                    CompiledKernel &reference) {
  uint64_t inputSeed = seed + 1000 * uint64_t(++numRuns);
  SCOPED_TRACE(describe(e, inputSeed));
  std::vector<Input> inputs = makeInputs(variant, p, e, inputSeed);
  if (edit)
    edit(inputs);
  std::vector<Array> results =
      allocateResults(getElementKind(p.getResultType()), p, e, p.memory, ElementKind::F32);
  if (llvm::Error error = kernel.run(inputs, results, p.memory, inputSeed)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return false;
  }
  std::vector<Array> expected = callReference(reference, inputs, p, e);
  bool isRight = true;
  for (size_t i = 0; i < results.size(); ++i) {
    if (i == 2) {
      isRight &= isLow(results, expected);
      continue;
    }
    Comparison c = llvm::cantFail(compare(results[i], expected[i]));
    // Products of 8 bits are summed with 14 bits or more.
    double bound = p.narrow.empty() ? kF32Bound : kNarrowSumBound;
    if (i == 0) {
      double zeros = getShareOfZeros(expected[0]);
      bound = getBound(p, !variant.text.empty(), e) / std::sqrt(std::max(1 - zeros, 1e-6));
    }
    // Scores as large as the distance are rounded to f32 before their differences are taken.
    if (llvm::any_of(variant.captures, [](const Capture &c) { return c.kind == Capture::Slopes; }))
      bound += 0x1p-22 * double(std::max(e.m, e.n));
    EXPECT_EQ(c.numUnwritten, 0) << "result " << i;
    EXPECT_EQ(c.numNaN, 0) << "result " << i;
    EXPECT_TRUE(c.isWithin(bound))
        << "result " << i << ": max relative " << c.maxRelative << " at " << c.worst << ", bound "
        << bound << ", got " << (c.worst < 0 ? 0 : results[i].get(c.worst)) << ", expected "
        << (c.worst < 0 ? 0 : expected[i].get(c.worst));
    isRight &= c.isWithin(bound);
  }
  return isRight;
}

} // namespace attn::test
