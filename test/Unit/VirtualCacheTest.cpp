//===- VirtualCacheTest.cpp - keys and values that grow where they lie ---------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/VirtualCache.h"
#include "test/Unit/Runtime/Fixture.h"
#include <random>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

using namespace attn;

namespace {
class VirtualCacheTest : public FakeCudaTest {
protected:
  static VirtualCache create(const VirtualCacheSpec &spec) {
    Result<VirtualCache> cache = VirtualCache::create(spec);
    EXPECT_TRUE(cache) << cache.getStatus().str();
    return std::move(*cache);
  }
  static std::string createError(const VirtualCacheSpec &spec) {
    return VirtualCache::create(spec).getStatus().str();
  }
};

using Order = VirtualCacheSpec::Order;

/// 3 sequences of up to 4096 tokens, 2 layers, 2 heads of 64 and 32 columns.
VirtualCacheSpec makeSpec(Order order = Order::Layers, int device = -1) {
  return {3, 4096, 2, 2, 64, 32, DataType::F32, order, device};
}

/// Whether a process may read there.
bool isReadable(const void *address) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  bool isRead = write(ends[0], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return isRead;
}

float *find(const TensorView &view, int64_t b, int64_t h, int64_t n, int64_t d) {
  return static_cast<float *>(view.data) + b * view.strides[0] + h * view.strides[1] +
         n * view.strides[2] + d * view.strides[3];
}

/// Both tensors of each layer.
std::vector<TensorView> getViews(const VirtualCache &cache) {
  std::vector<TensorView> views;
  for (int64_t layer = 0; layer < cache.getSpec().layers; ++layer)
    for (const Result<TensorView> &view : {cache.getKeys(layer), cache.getValues(layer)})
      views.push_back(*view);
  return views;
}

/// Calls with each element of the first `tokens` of a sequence, and a number of its own.
template <typename Fn>
void visit(const VirtualCache &cache, int64_t sequence, int64_t tokens, Fn fn) {
  float number = 0;
  for (const TensorView &view : getViews(cache))
    for (int64_t h = 0; h < view.shape[1]; ++h)
      for (int64_t n = 0; n < tokens; ++n)
        for (int64_t d = 0; d < view.shape[3]; ++d)
          fn(*find(view, sequence, h, n, d), number++);
}
} // namespace

#define EXPECT_OK(status)                                                                          \
  do {                                                                                             \
    Status got = (status);                                                                         \
    EXPECT_TRUE(got.ok()) << got.str();                                                            \
  } while (false)

//===----------------------------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------------------------===//

TEST_F(VirtualCacheTest, EachElementHasMemoryOfItsOwn) {
  for (Order order : {Order::Layers, Order::Tokens}) {
    VirtualCache cache = create(makeSpec(order));
    for (int64_t sequence = 0; sequence < 3; ++sequence)
      EXPECT_OK(cache.grow(sequence, 300 + sequence));
    for (int64_t sequence = 0; sequence < 3; ++sequence)
      visit(cache, sequence, 300 + sequence,
            [&](float &at, float number) { at = number + 0.25f * static_cast<float>(sequence); });
    for (int64_t sequence = 0; sequence < 3; ++sequence)
      visit(cache, sequence, 300 + sequence, [&](float &at, float number) {
        ASSERT_EQ(at, number + 0.25f * static_cast<float>(sequence));
      });
  }
}

TEST_F(VirtualCacheTest, TokensStayWhereTheyAre) {
  for (Order order : {Order::Layers, Order::Tokens}) {
    VirtualCache cache = create(makeSpec(order));
    std::vector<TensorView> before = getViews(cache);
    int64_t tokens = 1;
    EXPECT_OK(cache.grow(1, tokens));
    visit(cache, 1, tokens, [](float &at, float number) { at = number; });
    for (int64_t longer : {2, 700, 699, 4000, 4096}) {
      EXPECT_OK(cache.grow(1, longer));
      tokens = std::max(tokens, longer);
      EXPECT_EQ(cache.getTokens(1), tokens);
    }
    visit(cache, 1, 1, [](float &at, float number) { EXPECT_EQ(at, number); });
    for (auto [x, y] : llvm::zip_equal(before, getViews(cache)))
      EXPECT_EQ(x.data, y.data);
  }
}

TEST_F(VirtualCacheTest, TilesReadPastTheEndAndNoFarther) {
  VirtualCache cache = create(makeSpec());
  TensorView keys = *cache.getKeys(1);
  EXPECT_FALSE(isReadable(find(keys, 2, 0, 0, 0)));
  EXPECT_OK(cache.grow(2, 1000));
  EXPECT_TRUE(isReadable(find(keys, 2, 1, 999, 63)));
  EXPECT_TRUE(isReadable(find(keys, 2, 1, 1255, 63)));
  // A piece of the host holds 128 of these tokens.
  EXPECT_EQ(cache.getPieceTokens(), 128);
  EXPECT_FALSE(isReadable(find(keys, 2, 0, 1280, 0)));
  EXPECT_FALSE(isReadable(find(keys, 1, 0, 0, 0)));
  // By its beginning the driver tells whose memory a tensor is.
  EXPECT_TRUE(isReadable(find(keys, 0, 0, 0, 0)));
  EXPECT_OK(cache.release(2));
  EXPECT_FALSE(isReadable(find(keys, 2, 0, 0, 0)));
}

TEST_F(VirtualCacheTest, MemoryIsUsedAgain) {
  VirtualCache cache = create(makeSpec());
  EXPECT_EQ(cache.getBytes(), 0);
  EXPECT_OK(cache.grow(0, 1000));
  int64_t bytes = cache.getBytes();
  // 10 and 5 pieces of 64 KB for keys and values of two layers.
  EXPECT_EQ(bytes, 2 * 15 * 65536);
  EXPECT_OK(cache.release(0));
  EXPECT_EQ(cache.getTokens(0), 0);
  EXPECT_OK(cache.grow(2, 1000));
  EXPECT_EQ(cache.getBytes(), bytes);
  EXPECT_OK(cache.release(2));
  EXPECT_OK(cache.release(2));
  EXPECT_OK(cache.trim());
  EXPECT_EQ(cache.getBytes(), 0);
  EXPECT_OK(cache.grow(1, 1));
  EXPECT_OK(cache.grow(1, 0));
  EXPECT_EQ(cache.getTokens(1), 1);
}

TEST_F(VirtualCacheTest, PrefixesAreShared) {
  for (Order order : {Order::Layers, Order::Tokens}) {
    VirtualCache cache = create(makeSpec(order));
    EXPECT_OK(cache.grow(0, 1500));
    visit(cache, 0, 1500, [](float &at, float number) { at = number; });
    int64_t before = cache.getBytes();
    Result<int64_t> shared = cache.share(0, 1, 1400);
    ASSERT_TRUE(shared) << shared.getStatus().str();
    // Values fill a piece with 256 tokens; keys and values of two layers one with 42.7, three with
    // 128: whole tokens end where pieces do.
    EXPECT_EQ(*shared, 1280);
    EXPECT_EQ(cache.getTokens(1), *shared);
    EXPECT_LT(cache.getBytes() - before, before / 2);
    EXPECT_OK(cache.grow(1, 1500));
    // The sequence's own tokens are no one else's.
    for (const TensorView &view : getViews(cache))
      for (int64_t n = 0; n < 1500; ++n) {
        float *mine = find(view, 1, 1, n, 0), *first = find(view, 0, 1, n, 0);
        if (n < *shared) {
          ASSERT_EQ(*mine, *first);
          continue;
        }
        *mine = -1;
        ASSERT_NE(*first, -1);
      }
    EXPECT_OK(cache.release(0));
    // Memory lives as long as one of them.
    float last = 0;
    visit(cache, 1, 1, [&](float &at, float number) {
      if (number < 64)
        EXPECT_EQ(at, number);
      last = at;
    });
    EXPECT_GT(last, 0);
    EXPECT_OK(cache.release(1));
    EXPECT_OK(cache.trim());
    EXPECT_EQ(cache.getBytes(), 0);
  }
}

TEST_F(VirtualCacheTest, FewTokensAreNotShared) {
  VirtualCache cache = create(makeSpec());
  EXPECT_OK(cache.grow(0, 200));
  Result<int64_t> shared = cache.share(0, 1, 200);
  ASSERT_TRUE(shared);
  EXPECT_EQ(*shared, 0);
  EXPECT_EQ(cache.getTokens(1), 0);
  EXPECT_OK(cache.grow(1, 200));
}

TEST_F(VirtualCacheTest, RefusesByName) {
  VirtualCacheSpec spec = makeSpec();
  struct Field {
    const char *name;
    int64_t VirtualCacheSpec::*value;
    int64_t most;
  };
  for (auto [name, value, most] : {Field{"sequences", &VirtualCacheSpec::sequences, 1 << 20},
                                   {"tokens", &VirtualCacheSpec::tokens, INT32_MAX},
                                   {"layers", &VirtualCacheSpec::layers, 1 << 16},
                                   {"keyHeads", &VirtualCacheSpec::keyHeads, INT32_MAX},
                                   {"headDim", &VirtualCacheSpec::headDim, INT32_MAX}})
    for (int64_t wrong : {int64_t(0), int64_t(-1), most + 1}) {
      VirtualCacheSpec other = spec;
      other.*value = wrong;
      std::string expected = std::string("invalid argument: ") + name +
                             ": expected a number from 1 to " + std::to_string(most) + ", got ";
      EXPECT_EQ(createError(other).find(expected), 0u) << createError(other);
    }
  VirtualCacheSpec wide = spec;
  wide.valueDim = -1;
  EXPECT_NE(createError(wide).find("valueDim: expected 0"), std::string::npos);
  VirtualCacheSpec elsewhere = spec;
  elsewhere.device = -2;
  EXPECT_NE(createError(elsewhere).find("device: expected -1 for the host"), std::string::npos);
  VirtualCacheSpec large = spec;
  large.tokens = large.headDim = INT32_MAX;
  EXPECT_NE(createError(large).find("resource limit: expected addresses for 2147483647 tokens"),
            std::string::npos)
      << createError(large);
  large.headDim = 64;
  large.sequences = 1 << 20;
  EXPECT_NE(createError(large).find("expected addresses for 1048576 sequences"), std::string::npos)
      << createError(large);

  VirtualCache cache = create(spec);
  EXPECT_NE(cache.grow(3, 1).str().find("sequence: expected a number from 0 to 2, got 3"),
            std::string::npos);
  EXPECT_NE(cache.grow(0, 4097).str().find("tokens: expected a number from 0 to 4096, got 4097"),
            std::string::npos);
  EXPECT_NE(cache.grow(0, -1).str().find("tokens: expected"), std::string::npos);
  EXPECT_NE(cache.release(-1).str().find("sequence: expected"), std::string::npos);
  EXPECT_EQ(cache.getTokens(-1), -1);
  EXPECT_NE(cache.getKeys(2).getStatus().str().find("layer: expected a number from 0 to 1, got 2"),
            std::string::npos);
  EXPECT_NE(cache.getValues(-1).getStatus().str().find("layer: expected"), std::string::npos);
  EXPECT_OK(cache.grow(0, 10));
  EXPECT_NE(cache.share(0, 0, 1).getStatus().str().find("to: expected an empty sequence"),
            std::string::npos);
  EXPECT_NE(cache.share(1, 0, 1).getStatus().str().find("to: expected an empty sequence"),
            std::string::npos);
  EXPECT_NE(cache.share(0, 1, 11).getStatus().str().find("tokens: expected a number from 0 to 10"),
            std::string::npos);
  EXPECT_NE(cache.share(3, 1, 1).getStatus().str().find("from: expected"), std::string::npos);
  EXPECT_NE(cache.share(0, 3, 1).getStatus().str().find("to: expected a number"),
            std::string::npos);
}

//===----------------------------------------------------------------------------------------===//
// A GPU
//===----------------------------------------------------------------------------------------===//

TEST_F(VirtualCacheTest, OnADevice) {
  VirtualCache cache = create({2, 1 << 20, 3, 8, 128, 0, DataType::BF16, Order::Layers, 0});
  EXPECT_EQ(cache.getPieceTokens(), 1024);
  EXPECT_OK(cache.grow(0, 1));
  EXPECT_EQ(cache.getBytes(), int64_t(6 * FakeCuda::pieceBytes));
  EXPECT_OK(cache.grow(0, 768));
  EXPECT_EQ(cache.getBytes(), int64_t(6 * FakeCuda::pieceBytes));
  EXPECT_OK(cache.grow(0, 769));
  EXPECT_EQ(cache.getBytes(), int64_t(12 * FakeCuda::pieceBytes));
  EXPECT_EQ(fake->mapped.size(), 12u);
  EXPECT_EQ(fake->accessible.size(), 12u);
  TensorView values = *cache.getValues(2);
  auto address = reinterpret_cast<cuda::Pointer>(values.data);
  EXPECT_TRUE(fake->mapped.count(address));
  EXPECT_TRUE(fake->mapped.count(address + FakeCuda::pieceBytes));
  EXPECT_FALSE(fake->mapped.count(address + 2 * FakeCuda::pieceBytes));
}

TEST_F(VirtualCacheTest, MemoryStaysUntilTheStreamHasPassed) {
  VirtualCache cache = create({2, 4096, 1, 8, 128, 0, DataType::BF16, Order::Layers, 0});
  auto *stream = reinterpret_cast<void *>(0x5000);
  EXPECT_OK(cache.grow(0, 700));
  fake->isBusy = true;
  EXPECT_OK(cache.release(0, stream));
  EXPECT_EQ(fake->mapped.size(), 2u);
  EXPECT_EQ(cache.getTokens(0), 0);
  // Another sequence has other memory.
  EXPECT_OK(cache.grow(1, 1));
  EXPECT_EQ(fake->mapped.size(), 4u);
  fake->isBusy = false;
  EXPECT_OK(cache.grow(1, 1500));
  // The first sequence has a stand-in in both tensors again, one piece of its own.
  EXPECT_EQ(fake->mapped.size(), 6u);
  EXPECT_EQ(fake->handles.size(), 5u);
  EXPECT_OK(cache.release(1, stream));
}

TEST_F(VirtualCacheTest, ACaptureIsRefused) {
  VirtualCache cache = create(makeSpec(Order::Layers, 0));
  EXPECT_OK(cache.grow(0, 700));
  fake->capture = cuda::CaptureActive;
  Status status = cache.release(0);
  EXPECT_EQ(status.code, StatusCode::CaptureInProgress);
  EXPECT_NE(status.str().find("release sequences before the capture begins"), std::string::npos);
  EXPECT_EQ(cache.getTokens(0), 700);
}

TEST_F(VirtualCacheTest, WithoutMemoryASequenceStaysAsItWas) {
  VirtualCacheSpec spec = makeSpec(Order::Layers, 0);
  spec.tokens = 20000;
  VirtualCache cache = create(spec);
  fake->pieces = 7;
  EXPECT_OK(cache.grow(0, 700));
  Status status = cache.grow(1, 20000);
  EXPECT_EQ(status.code, StatusCode::OutOfMemory) << status.str();
  EXPECT_NE(status.str().find("free device memory"), std::string::npos);
  EXPECT_EQ(cache.getTokens(1), 0);
  EXPECT_EQ(fake->mapped.size(), 4u);
  status = cache.grow(0, 20000);
  EXPECT_EQ(status.code, StatusCode::OutOfMemory) << status.str();
  EXPECT_EQ(cache.getTokens(0), 700);
  EXPECT_OK(cache.grow(0, 800));
  EXPECT_OK(cache.release(0));
  fake->pieces = 100;
  EXPECT_OK(cache.grow(1, 20000));
}

TEST_F(VirtualCacheTest, EachFailureOfTheDriverIsAnError) {
  for (const char *function : {"MemAddressReserve", "MemGetAllocationGranularity"}) {
    fail(function, cuda::InvalidValue);
    EXPECT_NE(createError(makeSpec(Order::Layers, 0)).find("injected error"), std::string::npos)
        << function;
  }
  fail("", cuda::Success);
  for (const char *function : {"MemCreate", "MemMap", "MemSetAccess"}) {
    VirtualCache cache = create(makeSpec(Order::Tokens, 0));
    fail(function, cuda::InvalidValue);
    EXPECT_NE(cache.grow(0, 1).str().find("injected error"), std::string::npos) << function;
    EXPECT_EQ(cache.getTokens(0), 0);
    fail("", cuda::Success);
    EXPECT_OK(cache.grow(0, 1));
  }
  for (const char *function : {"EventCreate", "EventRecord", "EventQuery", "MemUnmap"}) {
    VirtualCache cache = create(makeSpec(Order::Tokens, 0));
    EXPECT_OK(cache.grow(0, 1));
    fail(function, cuda::InvalidValue);
    EXPECT_NE(cache.release(0).str().find("injected error"), std::string::npos) << function;
    fail("", cuda::Success);
    EXPECT_OK(cache.release(0));
  }
}

TEST_F(VirtualCacheTest, DevicesWithoutVirtualMemory) {
  fake->hasVirtualMemory = false;
  EXPECT_NE(createError(makeSpec(Order::Layers, 0)).find("expected a GPU with virtual memory"),
            std::string::npos);
  fake->hasVirtualMemory = true;
  fake->missing = {"cuMemSetAccess"};
  overrideDriverLibrary(ATTN_FAKE_CUDA);
  EXPECT_NE(createError(makeSpec(Order::Layers, 0)).find("unsupported device"), std::string::npos);
  overrideDriverLibrary("libattn-no-such-driver.so.1");
  EXPECT_NE(createError(makeSpec(Order::Layers, 0)).find("no driver"), std::string::npos);
}

/// Random calls beside a model of what they do: memory is mapped where a sequence has it, nowhere
/// twice, and all of it comes back.
TEST_F(VirtualCacheTest, Random) {
  std::random_device device;
  unsigned seed = device();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  auto draw = [&](int64_t count) { return static_cast<int64_t>(random() % count); };
  for (Order order : {Order::Layers, Order::Tokens}) {
    VirtualCache cache = create({4, 20000, 2, 1 + draw(3), 64, 0, DataType::BF16, order, 0});
    std::vector<int64_t> tokens(4);
    for (int step = 0; step < 300; ++step) {
      int64_t b = draw(4), other = draw(4);
      switch (draw(4)) {
      case 0:
      case 1: {
        int64_t wanted = draw(20001);
        EXPECT_OK(cache.grow(b, wanted));
        tokens[b] = std::max(tokens[b], wanted);
        break;
      }
      case 2:
        EXPECT_OK(cache.release(b));
        tokens[b] = 0;
        break;
      default:
        if (b == other || tokens[other])
          break;
        Result<int64_t> shared = cache.share(b, other, draw(tokens[b] + 1));
        ASSERT_TRUE(shared) << shared.getStatus().str();
        tokens[other] = *shared;
        break;
      }
      const VirtualCacheSpec &spec = cache.getSpec();
      for (int64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(cache.getTokens(i), tokens[i]);
        if (!tokens[i])
          continue;
        for (const TensorView &view : getViews(cache)) {
          int64_t last = std::min(tokens[i] + 255, spec.tokens - 1);
          auto *at = reinterpret_cast<char *>(view.data) +
                     2 * (i * view.strides[0] + last * view.strides[2] + view.shape[3] - 1);
          auto address = reinterpret_cast<cuda::Pointer>(at) / FakeCuda::pieceBytes;
          ASSERT_TRUE(fake->accessible.count(address * FakeCuda::pieceBytes));
        }
      }
    }
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_OK(cache.release(i));
    std::set<cuda::MemoryHandle> left;
    for (auto [address, handle] : fake->mapped)
      left.insert(handle);
    EXPECT_EQ(left.size(), 1u);
  }
}
