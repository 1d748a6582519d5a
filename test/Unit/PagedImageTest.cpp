//===- PagedImageTest.cpp - paged kernels where there is no compiler ------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Another process compiles, and leaves PTX and a plan. This one links the runtime alone, loads them
// onto the fake driver and launches: what the kernels are given of pools, tables and lengths.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/Runtime/Fixture.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
using llvm::StringRef;

namespace {
std::string readFile(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFileAsStream(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

class PagedImageTest : public FakeCudaTest {
protected:
  /// Once: pages of 16 keys of 64 columns, causal from the end of each sequence.
  static void SetUpTestSuite() {
    llvm::SmallString<128> folder;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-image-test", folder));
    std::string ptx = (folder + "/kernel.ptx").str(), plan = (folder + "/plan.json").str();
    std::string command = ATTN_TRANSLATE " " ATTN_TEST_DIR "/Tools/AttnRun/paged-holes.mlir "
                                         "--to-ptx --way=auto --plan=" +
                          plan + " -o " + ptx;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    image = {readFile(ptx), readFile(plan), ""};
    llvm::sys::fs::remove_directories(folder);
  }

  /// What the driver was told of a pool.
  const FakeCuda::Encoding *findMap(uintptr_t address) const {
    auto found = llvm::find_if(fake->encodings, [&](const FakeCuda::Encoding &each) {
      return each.address == reinterpret_cast<void *>(address);
    });
    return found == fake->encodings.end() ? nullptr : &*found;
  }

  Status launch(const Kernel &kernel) {
    return kernel.launch({query, keys, values, table, lengths, output},
                         reinterpret_cast<void *>(0x77));
  }

  static KernelImage image;
  FakeTensor query{0x100000, {2, 8, 1, 64}}, output{0x700000, {2, 8, 1, 64}};
  FakeTensor keys{0x200000, {100, 16, 2, 64}}, values{0x10000000, {100, 16, 2, 64}};
  FakeTensor table{0x500000, {2, 40}, {}, DataType::I32}, lengths{0x600000, {2}, {}, DataType::I32};
};

KernelImage PagedImageTest::image;
} // namespace

TEST_F(PagedImageTest, NobodyCompilesHere) {
  // Of a library that is linked statically only what is called is there.
  std::string maps = readFile("/proc/self/maps");
  EXPECT_NE(maps.find("PagedImageTest"), std::string::npos);
  EXPECT_EQ(maps.find("libMLIR"), std::string::npos);
  EXPECT_TRUE(StringRef(image.ptx).contains(".visible .entry attention("));
}

TEST_F(PagedImageTest, DecodesPages) {
  Result<Kernel> kernel = Kernel::load(image);
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  for (const WayInfo &way : kernel->getWays())
    EXPECT_TRUE(way.isReady) << way.name;
  Result<std::string> way = kernel->chooseWay({query, keys, values, table, lengths, output});
  ASSERT_TRUE(way) << way.getStatus().str();
  EXPECT_EQ(*way, "packed4");

  Status status = launch(*kernel);
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_FALSE(fake->launches.empty());
  for (const FakeTensor *pool : {&keys, &values}) {
    const FakeCuda::Encoding *map = findMap(pool->address);
    ASSERT_TRUE(map);
    EXPECT_EQ(map->sizes, std::vector<uint64_t>({64, 16, 2, 100}));
    EXPECT_EQ(map->strides, std::vector<uint64_t>({256, 128, 4096}));
    EXPECT_EQ(map->box, std::vector<uint32_t>({64, 16, 1, 1}));
  }

  // Heads before the rows of a page.
  fake->encodings.clear();
  keys.strides = values.strides = {2048, 64, 1024, 1};
  ASSERT_TRUE(launch(*kernel).ok());
  const FakeCuda::Encoding *map = findMap(keys.address);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->sizes, std::vector<uint64_t>({64, 16, 2, 100}));
  EXPECT_EQ(map->strides, std::vector<uint64_t>({128, 2048, 4096}));
}

/// The kernel of most calls, whose parameters the plan lists.
TEST_F(PagedImageTest, TablesAndLengthsArePassed) {
  Result<Kernel> kernel = Kernel::load(image);
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  llvm::Expected<FunctionPlan> plan = readPlan(image.plan);
  ASSERT_TRUE(bool(plan)) << toString(plan.takeError());
  const KernelPlan &most = plan->kernels.back();
  ASSERT_TRUE(most.when.empty());
  recordParameters(most);
  query.shape[2] = output.shape[2] = 300;
  Status status = launch(*kernel);
  ASSERT_TRUE(status.ok()) << status.str();
  ASSERT_EQ(fake->launches.size(), 1u);
  auto getAddress = [&](unsigned argument) {
    return findAddress(most, fake->launches[0], argument);
  };
  EXPECT_EQ(getAddress(3), table.address);
  EXPECT_EQ(getAddress(4), lengths.address);
  EXPECT_EQ(getAddress(5), output.address);
}

TEST_F(PagedImageTest, RefusesByNumber) {
  Result<Kernel> kernel = Kernel::load(image);
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  fake->hostAddress = table.address;
  EXPECT_EQ(launch(*kernel).message, "expected argument 3 in memory of device 0, got the address "
                                     "0x500000, which the driver does not know");
  fake->hostAddress = 0;
  keys.strides = {2048, 128, 64, 2};
  EXPECT_EQ(launch(*kernel).message,
            "expected the stride of dimension 3 of argument 1 to be 1, got 2");
  EXPECT_EQ(kernel->launch({query, keys, values, table, output}, nullptr).message,
            "expected 6 arguments, got 5");
  EXPECT_TRUE(fake->launches.empty());
}
