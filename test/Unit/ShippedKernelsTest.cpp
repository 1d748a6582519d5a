//===- ShippedKernelsTest.cpp - kernels that came with the library ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/CacheFixture.h"

using namespace attn;

namespace {
/// A folder of entries beside a file that stands for the library.
class ShippedKernelsTest : public CacheTest {
protected:
  void SetUp() override {
    CacheTest::SetUp();
    library = std::string(root) + "/libattn.so";
    folder = std::string(root) + "/shipped";
    write(library, "the library");
    ASSERT_EQ(::mkdir(folder.c_str(), 0755), 0);
    ship(1);
  }

  std::string getPath(int number) const { return folder + "/" + makeKey(number).str() + ".kernel"; }
  void ship(int number) {
    write(getPath(number), writeCacheEntry(makeKey(number), makeImage(number)));
    ASSERT_EQ(::chmod(getPath(number).c_str(), 0644), 0);
  }
  bool isFound() {
    return ShippedKernels(folder, library, options.remark).lookup(makeKey(1)) == makeImage(1);
  }

  std::string library, folder;
};
} // namespace

TEST_F(ShippedKernelsTest, ServeWhatTheDiskHasNot) {
  KernelCache cache(options, folder, library);
  auto compile = [] { return Result<KernelImage>(makeImage(7)); };
  Result<KernelCache::Image> image = cache.getOrCompile(makeKey(1), compile);
  ASSERT_TRUE(image);
  EXPECT_EQ(**image, makeImage(1));
  // It stays where it is, and nothing is said of it.
  EXPECT_TRUE(listFiles(".kernel").empty());
  EXPECT_TRUE(remarks.empty());
  // Others are compiled, and kept on the user's disk alone.
  image = cache.getOrCompile(makeKey(2), compile);
  ASSERT_TRUE(image);
  EXPECT_EQ(**image, makeImage(7));
  EXPECT_EQ(listFiles(".kernel").size(), 1u);
  EXPECT_NE(::access(getPath(2).c_str(), F_OK), 0);
  // What the user's disk has comes first.
  CacheDirectory(options).store(makeKey(1), makeImage(3));
  EXPECT_EQ(*KernelCache(options, folder, library).lookup(makeKey(1)), makeImage(3));
}

TEST_F(ShippedKernelsTest, NoFolderIsNoRemark) {
  EXPECT_FALSE(ShippedKernels().lookup(makeKey(1)));
  EXPECT_FALSE(ShippedKernels(folder + "-none", library, options.remark).lookup(makeKey(1)));
  EXPECT_FALSE(ShippedKernels(folder, library, options.remark).lookup(makeKey(2)));
  EXPECT_TRUE(remarks.empty());
}

TEST_F(ShippedKernelsTest, DamagedEntriesAreToldAndStay) {
  std::string bytes = writeCacheEntry(makeKey(1), makeImage(1));
  bytes[bytes.size() / 2] ^= 1;
  write(getPath(1), bytes);
  ShippedKernels shipped(folder, library, options.remark);
  EXPECT_FALSE(shipped.lookup(makeKey(1)));
  EXPECT_FALSE(shipped.lookup(makeKey(1)));
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0], "expected an entry that is whole, got a damaged one: '" + getPath(1) + "'");
  EXPECT_EQ(read(getPath(1)), bytes);
}

// An entry of another name would be another kernel: its bytes hold the key.
TEST_F(ShippedKernelsTest, EntriesHoldTheirKeys) {
  write(getPath(2), writeCacheEntry(makeKey(1), makeImage(1)));
  EXPECT_FALSE(ShippedKernels(folder, library, options.remark).lookup(makeKey(2)));
  EXPECT_EQ(remarks.size(), 1u);
}

TEST_F(ShippedKernelsTest, WritersOfTheLibraryAreTheOnlyOnes) {
  struct Case {
    mode_t library, folder, entry;
    bool isFound;
  };
  for (Case modes : {Case{0644, 0755, 0644, true}, Case{0444, 0555, 0444, true},
                     // What pip writes where groups are of one user, or for a shared account.
                     Case{0664, 0775, 0664, true}, Case{0644, 0775, 0644, false},
                     Case{0644, 0755, 0664, false}, Case{0664, 0775, 0666, false},
                     Case{0644, 0757, 0644, false}, Case{0666, 0777, 0666, true}}) {
    ASSERT_EQ(::chmod(library.c_str(), modes.library), 0);
    ASSERT_EQ(::chmod(folder.c_str(), modes.folder), 0);
    ASSERT_EQ(::chmod(getPath(1).c_str(), modes.entry), 0);
    remarks.clear();
    EXPECT_EQ(isFound(), modes.isFound) << std::oct << modes.folder << " " << modes.entry;
    EXPECT_EQ(remarks.empty(), modes.isFound);
  }
}

TEST_F(ShippedKernelsTest, OfTheLibrarysOwnerOrTheSuperuser) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only the superuser can give files away";
  for (const std::string &path : {folder, getPath(1)}) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    EXPECT_FALSE(isFound());
    ASSERT_EQ(remarks.size(), 1u);
    EXPECT_NE(remarks[0].find("of the library's owner, user 0, got one of user 65534"),
              std::string::npos);
    remarks.clear();
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  // A library of a user, such as in their virtual environment.
  for (const std::string &path : {library, folder, getPath(1)})
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(isFound());
  ASSERT_EQ(::chown(getPath(1).c_str(), 0, 0), 0);
  EXPECT_TRUE(isFound());
  // Groups that may write are the library's.
  for (const std::string &path : {library, folder, getPath(1)})
    ASSERT_EQ(::chmod(path.c_str(), 0775), 0);
  EXPECT_FALSE(isFound());
}

TEST_F(ShippedKernelsTest, LinksAreNotFollowed) {
  std::string elsewhere = std::string(root) + "/elsewhere";
  ASSERT_EQ(::rename(getPath(1).c_str(), elsewhere.c_str()), 0);
  ASSERT_EQ(::symlink(elsewhere.c_str(), getPath(1).c_str()), 0);
  EXPECT_FALSE(isFound());
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("a regular file, got a link"), std::string::npos);
}
