//===- CacheTest.cpp - kernels between runs ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/CacheFixture.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <fcntl.h>
#include <random>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace attn;
namespace fs = llvm::sys::fs;

TEST_F(CacheTest, Keys) {
  CacheKeyParts parts{"source", "1.0", "BM=128", "sm_90a", 12040};
  CacheKey key = computeCacheKey(parts);
  EXPECT_EQ(key.str().size(), 64u);
  EXPECT_EQ(key, computeCacheKey(parts));
  EXPECT_NE(key, computeCacheKey({"source2", "1.0", "BM=128", "sm_90a", 12040}));
  EXPECT_NE(key, computeCacheKey({"source", "1.1", "BM=128", "sm_90a", 12040}));
  EXPECT_NE(key, computeCacheKey({"source", "1.0", "BM=64", "sm_90a", 12040}));
  EXPECT_NE(key, computeCacheKey({"source", "1.0", "BM=128", "sm_90", 12040}));
  EXPECT_NE(key, computeCacheKey({"source", "1.0", "BM=128", "sm_90a", 12050}));
  EXPECT_NE(key, computeCacheKey({"source1", ".0", "BM=128", "sm_90a", 12040}));
}

TEST_F(CacheTest, EntriesRoundTrip) {
  for (int number : {0, 1, 7}) {
    std::string bytes = writeCacheEntry(makeKey(number), makeImage(number));
    EXPECT_EQ(readCacheEntry(makeKey(number), bytes), makeImage(number));
    EXPECT_EQ(readCacheEntry(makeKey(number + 1), bytes), std::nullopt);
  }
}

TEST_F(CacheTest, EveryDamageIsSeen) {
  KernelImage image{"ptx", "plan", "cubin"};
  std::string bytes = writeCacheEntry(makeKey(1), image);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(readCacheEntry(makeKey(1), llvm::StringRef(bytes).take_front(i)), std::nullopt);
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] ^= 1 << bit;
      EXPECT_EQ(readCacheEntry(makeKey(1), damaged), std::nullopt);
    }
  }
  EXPECT_EQ(readCacheEntry(makeKey(1), bytes + "x"), std::nullopt);
}

TEST_F(CacheTest, CompilesOnce) {
  int compilations = 0;
  auto compile = [&]() -> Result<KernelImage> {
    ++compilations;
    return makeImage(3);
  };
  for (int process = 0; process < 2; ++process) {
    KernelCache cache(options);
    for (int i = 0; i < 3; ++i) {
      Result<KernelCache::Image> image = cache.getOrCompile(makeKey(3), compile);
      ASSERT_TRUE(image);
      EXPECT_EQ(**image, makeImage(3));
    }
  }
  EXPECT_EQ(compilations, 1);
  EXPECT_EQ(listFiles(".kernel").size(), 1u);
  EXPECT_TRUE(listFiles(".tmp").empty());
  EXPECT_TRUE(remarks.empty());
}

TEST_F(CacheTest, InMemoryOnly) {
  options.onDisk = false;
  KernelCache cache(options);
  cache.store(makeKey(1), makeImage(1));
  EXPECT_TRUE(cache.lookup(makeKey(1)));
  EXPECT_FALSE(cache.lookup(makeKey(2)));
  EXPECT_FALSE(fs::exists(options.directory));
  EXPECT_TRUE(remarks.empty());
}

/// A process that makes kernels without end keeps 64 MiB of them.
TEST_F(CacheTest, TheOldestLeaveMemory) {
  options.onDisk = false;
  KernelCache cache(options);
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 80; ++i) {
    cache.store(makeKey(i), {megabyte, "plan", ""});
    EXPECT_TRUE(cache.lookup(makeKey(0))) << "the youngest, since it is used";
  }
  int numKept = 0;
  for (int i = 0; i < 80; ++i)
    numKept += cache.lookup(makeKey(i)) != nullptr;
  EXPECT_EQ(numKept, 63);
  EXPECT_TRUE(cache.lookup(makeKey(79)));
  EXPECT_FALSE(cache.lookup(makeKey(1)));
}

TEST_F(CacheTest, ThreadsShareACompilation) {
  KernelCache cache(options);
  std::atomic<int> compilations{0}, good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      Result<KernelCache::Image> image =
          cache.getOrCompile(makeKey(1), [&]() -> Result<KernelImage> {
            ++compilations;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return makeImage(1);
          });
      good += image && **image == makeImage(1);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(compilations, 1);
  EXPECT_EQ(good, 16);
}

TEST_F(CacheTest, FailuresAreNotKept) {
  KernelCache cache(options);
  auto fail = []() -> Result<KernelImage> { return Status{StatusCode::InvalidKernel, "no", ""}; };
  EXPECT_EQ(cache.getOrCompile(makeKey(1), fail).getStatus().message, "no");
  auto compile = []() -> Result<KernelImage> { return makeImage(1); };
  EXPECT_TRUE(cache.getOrCompile(makeKey(1), compile));
}

TEST_F(CacheTest, DamagedEntriesAreReplaced) {
  CacheDirectory(options).store(makeKey(1), makeImage(1));
  std::string path = CacheDirectory(options).getEntryPath(makeKey(1));
  std::string bytes = read(path);
  ASSERT_FALSE(bytes.empty());
  for (const std::string &damaged :
       {std::string(), bytes.substr(0, 20), bytes.substr(0, bytes.size() - 1), bytes + "x"}) {
    remarks.clear();
    write(path, damaged);
    KernelCache cache(options);
    EXPECT_FALSE(cache.lookup(makeKey(1)));
    EXPECT_FALSE(fs::exists(path));
    ASSERT_EQ(remarks.size(), 1u);
    EXPECT_NE(remarks[0].find("damaged"), std::string::npos);
    cache.store(makeKey(1), makeImage(1));
    EXPECT_EQ(read(path), bytes);
  }
}

TEST_F(CacheTest, LeastRecentlyUsedLeave) {
  uint64_t size = writeCacheEntry(makeKey(0), makeImage(0)).size();
  options.maxBytes = 100 * size;
  CacheDirectory directory(options);
  for (int i = 0; i < 8; ++i) {
    directory.store(makeKey(i), makeImage(0));
    setAge(directory.getEntryPath(makeKey(i)), 1000 - i);
  }
  // A use makes the oldest the newest.
  EXPECT_TRUE(directory.lookup(makeKey(0)));
  options.maxBytes = 4 * size;
  CacheDirectory(options).evict();
  EXPECT_EQ(listFiles(".kernel").size(), 3u);
  EXPECT_TRUE(directory.lookup(makeKey(0)));
  EXPECT_FALSE(directory.lookup(makeKey(4)));
  EXPECT_TRUE(directory.lookup(makeKey(6)));
  EXPECT_TRUE(directory.lookup(makeKey(7)));
}

TEST_F(CacheTest, StoresKeepTheLimit) {
  uint64_t size = writeCacheEntry(makeKey(0), makeImage(0)).size();
  options.maxBytes = 5 * size;
  for (int i = 0; i < 20; ++i)
    CacheDirectory(options).store(makeKey(i), makeImage(0));
  EXPECT_LE(listFiles(".kernel").size(), 5u);
  EXPECT_GE(listFiles(".kernel").size(), 4u);
  options.maxBytes = size - 1;
  CacheDirectory(options).store(makeKey(100), makeImage(0));
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("expected a kernel of at most"), std::string::npos);
}

TEST_F(CacheTest, LeftoversOfKilledProcessesLeave) {
  CacheDirectory directory(options);
  directory.store(makeKey(1), makeImage(1));
  write(options.directory + "/old.tmp", "half");
  write(options.directory + "/new.tmp", "half");
  write(options.directory + "/notes.txt", "not ours");
  setAge(options.directory + "/old.tmp", 2 * 3600);
  setAge(options.directory + "/notes.txt", 2 * 3600);
  directory.evict();
  EXPECT_EQ(listFiles("old.tmp").size(), 0u);
  EXPECT_EQ(listFiles("new.tmp").size(), 1u);
  EXPECT_EQ(listFiles("notes.txt").size(), 1u);
}

//===----------------------------------------------------------------------------------------===//
// Directories that do not work
//===----------------------------------------------------------------------------------------===//

TEST_F(CacheTest, UnusableDirectories) {
  write(std::string(root) + "/file", "");
  std::string open = std::string(root) + "/open";
  ASSERT_EQ(mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open.c_str(), 0777), 0);
  std::string group = std::string(root) + "/group";
  ASSERT_EQ(mkdir(group.c_str(), 0700), 0);
  ASSERT_EQ(chmod(group.c_str(), 0775), 0);
  for (auto [directory, message] :
       {std::pair<std::string, std::string>{"relative", "absolute path"},
        {std::string(root) + "/file", "expected a directory, got a file"},
        {open, "expected a directory that no other user may write to: '" + open + "'"},
        {group, "expected a directory that no other user may write to: '" + group + "'"},
        {"/proc/attn", "failed to create '/proc/attn'"}}) {
    remarks.clear();
    options.directory = directory;
    KernelCache cache(options);
    for (int i = 0; i < 3; ++i) {
      cache.store(makeKey(i), makeImage(i));
      EXPECT_TRUE(cache.lookup(makeKey(i)));
    }
    ASSERT_EQ(remarks.size(), 1u) << directory;
    EXPECT_NE(remarks[0].find(message), std::string::npos) << remarks[0];
  }
}

TEST_F(CacheTest, StrangersEntriesAreNotLoaded) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only the superuser can give files away";
  CacheDirectory directory(options);
  directory.store(makeKey(1), makeImage(1));
  std::string entry = directory.getEntryPath(makeKey(1));
  ASSERT_EQ(chown(entry.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(directory.lookup(makeKey(1)));
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0],
            "expected a cache entry of this user, got one of user 65534: '" + entry + "'");
  // Ours takes its place.
  directory.store(makeKey(1), makeImage(1));
  EXPECT_TRUE(directory.lookup(makeKey(1)));
  // A directory is looked at each time, not only when a process begins.
  ASSERT_EQ(chown(options.directory.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(directory.lookup(makeKey(1)));
  directory.store(makeKey(2), makeImage(2));
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_EQ(remarks[1], "kernels are not cached on disk: expected a directory of this user, got "
                        "one of user 65534: '" +
                            options.directory + "'");
  EXPECT_EQ(listFiles(".kernel").size(), 1u);
}

TEST_F(CacheTest, EntriesThatOthersMayWriteToAreNotLoaded) {
  CacheDirectory directory(options);
  directory.store(makeKey(1), makeImage(1));
  std::string entry = directory.getEntryPath(makeKey(1));
  for (mode_t mode : {0620, 0602}) {
    ASSERT_EQ(chmod(entry.c_str(), mode), 0);
    EXPECT_FALSE(directory.lookup(makeKey(1)));
  }
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0], "expected a cache entry that no other user may write to: '" + entry + "'");
  ASSERT_EQ(chmod(options.directory.c_str(), 0770), 0);
  ASSERT_EQ(chmod(entry.c_str(), 0600), 0);
  EXPECT_FALSE(directory.lookup(makeKey(1)));
  ASSERT_EQ(chmod(options.directory.c_str(), 0700), 0);
  EXPECT_TRUE(directory.lookup(makeKey(1)));
}

TEST_F(CacheTest, ModesDoNotDependOnTheMask) {
  for (mode_t mask : {0, 0077, 0777}) {
    mode_t before = umask(mask);
    CacheDirectory(options).store(makeKey(mask), makeImage(1));
    umask(before);
    struct stat status;
    std::string entry = CacheDirectory(options).getEntryPath(makeKey(mask));
    ASSERT_EQ(stat(entry.c_str(), &status), 0) << mask;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << mask;
    ASSERT_EQ(stat(options.directory.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << mask;
  }
}

TEST_F(CacheTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkdir(options.directory.c_str(), 0700), 0);
  CacheDirectory directory(options);
  std::string entry = directory.getEntryPath(makeKey(1)), other = std::string(root) + "/other";
  write(other, writeCacheEntry(makeKey(1), makeImage(1)));
  ASSERT_EQ(chmod(other.c_str(), 0600), 0);
  auto expectRefused = [&](llvm::StringRef reason) {
    remarks.clear();
    CacheDirectory fresh(options);
    EXPECT_FALSE(fresh.lookup(makeKey(1)));
    ASSERT_EQ(remarks.size(), 1u);
    EXPECT_EQ(remarks[0], ("expected a cache entry " + reason + ": '" + entry + "'").str());
    fresh.evict();
    // A store puts an entry in its place.
    fresh.store(makeKey(1), makeImage(1));
    EXPECT_TRUE(fresh.lookup(makeKey(1)));
    ASSERT_EQ(unlink(entry.c_str()), 0);
  };
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  expectRefused("a regular file, got another kind");
  ASSERT_EQ(symlink("/dev/zero", entry.c_str()), 0);
  expectRefused("a regular file, got a link");
  ASSERT_EQ(symlink(other.c_str(), entry.c_str()), 0);
  expectRefused("a regular file, got a link");
  write(entry, "");
  ASSERT_EQ(chmod(entry.c_str(), 0600), 0);
  ASSERT_EQ(truncate(entry.c_str(), off_t(1) << 40), 0);
  expectRefused("of at most " + std::to_string(options.maxBytes) + " bytes, got 1099511627776");
}

TEST_F(CacheTest, DefaultDirectory) {
  int code = runChild([&] {
    setenv("XDG_CACHE_HOME", root.c_str(), 1);
    if (CacheDirectory({}).getPath() != std::string(root) + "/attn")
      return 1;
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", root.c_str(), 1);
    return CacheDirectory({}).getPath() == std::string(root) + "/.cache/attn" ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(CacheTest, ReadOnlyDirectory) {
  CacheDirectory(options).store(makeKey(1), makeImage(1));
  ASSERT_EQ(chmod(options.directory.c_str(), 0555), 0);
  ASSERT_EQ(chmod(root.c_str(), 0755), 0);
  if (geteuid() == 0) {
    std::string entry = CacheDirectory(options).getEntryPath(makeKey(1));
    for (const std::string &path : {options.directory, entry})
      ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  }
  int code = runChild([&] {
    // The superuser may write anywhere.
    if (geteuid() == 0 && setuid(65534))
      return 1;
    KernelCache cache(options);
    if (!cache.lookup(makeKey(1)) || !remarks.empty())
      return 2;
    // Nor is there a lock to wait for.
    KernelCache other(options);
    Result<KernelCache::Image> compiled =
        other.getOrCompile(makeKey(4), []() -> Result<KernelImage> { return makeImage(4); });
    if (!compiled || **compiled != makeImage(4))
      return 4;
    remarks.clear();
    cache.store(makeKey(2), makeImage(2));
    cache.store(makeKey(3), makeImage(3));
    return cache.lookup(makeKey(2)) && remarks.size() == 1 &&
                   remarks[0].find("failed to write to") != std::string::npos
               ? 0
               : 3;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(CacheTest, FullDisk) {
  int code = runChild([&] {
    // A limit on file sizes stands in for a full disk: both end a write half way.
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{2048, 2048};
    setrlimit(RLIMIT_FSIZE, &limit);
    KernelCache cache(options);
    cache.store(makeKey(1), makeImage(1));
    cache.store(makeKey(2), makeImage(2));
    return cache.lookup(makeKey(1)) && remarks.size() == 1 ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(listFiles(".kernel").empty());
  EXPECT_TRUE(listFiles(".tmp").empty());
}

//===----------------------------------------------------------------------------------------===//
// Many processes, killed
//===----------------------------------------------------------------------------------------===//

TEST_F(CacheTest, KilledProcesses) {
  struct Counters {
    std::atomic<uint64_t> hits, misses, wrong, stores;
  };
  void *memory =
      mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto &counters = *new (memory) Counters{};
  constexpr int numKeys = 12, numProcesses = 64;
  // Room for about half of the keys, so that eviction takes part.
  options.maxBytes = 100000;
  options.remark = nullptr;

  auto hammer = [&](unsigned seed) {
    std::mt19937 random(seed);
    while (true) {
      // Each round is a new process to the cache: nothing in memory yet.
      KernelCache cache(options);
      for (int i = 0; i < 4; ++i) {
        int number = random() % numKeys;
        if (KernelCache::Image image = cache.lookup(makeKey(number))) {
          ++(*image == makeImage(number) ? counters.hits : counters.wrong);
          continue;
        }
        ++counters.misses;
        cache.store(makeKey(number), makeImage(number));
        ++counters.stores;
      }
      // Some vandalism: an entry cut short in place.
      if (random() % 64 == 0)
        (void)!truncate(cache.getDirectory().getEntryPath(makeKey(random() % numKeys)).c_str(),
                        random() % 4000);
    }
  };
  unsigned seed = 0;
  auto spawn = [&] {
    pid_t child = fork();
    if (child == 0) {
      // A test that is stopped leaves no hammers behind.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      hammer(seed);
    }
    ++seed;
    return child;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < numProcesses; ++i)
    children.push_back(spawn());
  auto kill9 = [](pid_t child) {
    // Where fork failed it is -1, which is everybody.
    if (child > 0 && kill(child, SIGKILL) == 0)
      waitpid(child, nullptr, 0);
  };
  std::mt19937 random(1);
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pid_t &victim = children[random() % children.size()];
    kill9(victim);
    victim = spawn();
  }
  for (pid_t child : children)
    kill9(child);

  EXPECT_EQ(counters.wrong, 0u);
  EXPECT_GT(counters.hits, 0u);
  EXPECT_GT(counters.stores, 0u);
  std::printf("%u processes: %llu hits, %llu misses, %llu stores\n", seed,
              static_cast<unsigned long long>(counters.hits),
              static_cast<unsigned long long>(counters.misses),
              static_cast<unsigned long long>(counters.stores));
  // What is left works.
  KernelCache cache(options);
  for (int number = 0; number < numKeys; ++number) {
    Result<KernelCache::Image> image = cache.getOrCompile(
        makeKey(number), [&]() -> Result<KernelImage> { return makeImage(number); });
    ASSERT_TRUE(image);
    EXPECT_EQ(**image, makeImage(number));
  }
  munmap(memory, sizeof(Counters));
}
