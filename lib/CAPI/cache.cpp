//===- cache.cpp - caches that grow where they lie, for C ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/VirtualCache.h"
#include "lib/CAPI/LastStatus.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <memory>
#include <optional>

using namespace attn;
using llvm::StringRef;

struct attn_cache {
  /// Shared with what was exported.
  std::shared_ptr<VirtualCache> cache;
};

/// DLManagedTensor of DLPack, whose first field has the layout of attn_tensor.
struct ManagedTensor {
  attn_tensor tensor;
  void *owner;
  void (*deleter)(ManagedTensor *self);
};

/// The type of elements, and DLPack's code and bits.
struct Element {
  DataType type;
  uint8_t code, bits;
};
static constexpr Element elements[] = {{DataType::F16, ATTN_DL_FLOAT, 16},
                                       {DataType::BF16, ATTN_DL_BFLOAT, 16},
                                       {DataType::F32, ATTN_DL_FLOAT, 32},
                                       {DataType::F8E4M3FN, ATTN_DL_FLOAT8_E4M3FN, 8},
                                       {DataType::F8E5M2, ATTN_DL_FLOAT8_E5M2, 8}};

/// -1 is the host; none where the text is neither.
static std::optional<int> readDevice(StringRef text) {
  if (text == "cpu")
    return -1;
  int ordinal = 0;
  if (text == "cuda" ||
      (text.consume_front("cuda:") && !text.getAsInteger(10, ordinal) && ordinal >= 0))
    return ordinal;
  return std::nullopt;
}

static Result<VirtualCacheSpec> readSpec(const attn_cache_spec &given) {
  auto expected = [](const llvm::Twine &message) {
    return Status{StatusCode::InvalidArgument, "spec: " + message.str(),
                  "start from ATTN_CACHE_SPEC_INIT"};
  };
  auto orNull = [](const char *text) { return StringRef(text ? text : "null"); };
  if (given.size != sizeof(attn_cache_spec))
    return expected("expected size " + llvm::Twine(sizeof(attn_cache_spec)) + ", got " +
                    llvm::Twine(given.size));
  const auto *element = llvm::find_if(
      elements, [&](const Element &at) { return orNull(given.type) == getName(at.type); });
  if (element == std::end(elements))
    return expected("type: expected f16, bf16, f32, f8E4M3FN or f8E5M2, got " + orNull(given.type));
  std::optional<int> device = readDevice(orNull(given.device));
  if (!device)
    return expected("device: expected cpu, cuda or cuda:NUMBER, got " + orNull(given.device));
  using Order = VirtualCacheSpec::Order;
  StringRef order = orNull(given.order);
  if (order != "layers" && order != "tokens")
    return expected("order: expected layers or tokens, got " + order);
  return VirtualCacheSpec{given.sequences, given.tokens,
                          given.layers,    given.key_heads,
                          given.head_dim,  given.value_dim,
                          element->type,   order == "layers" ? Order::Layers : Order::Tokens,
                          *device};
}

attn_code attn_cache_create(const attn_cache_spec *spec, attn_cache **cache) {
  if (!spec || !cache)
    return failNull(!spec ? "spec" : "cache");
  *cache = nullptr;
  Result<VirtualCacheSpec> read = readSpec(*spec);
  if (!read)
    return finish(read.takeStatus());
  Result<VirtualCache> created = VirtualCache::create(*read);
  if (created) {
    *cache = new attn_cache{std::make_shared<VirtualCache>(std::move(*created))};
    return ATTN_OK;
  }
  Status status = created.takeStatus();
  auto [word, rest] = StringRef(status.message).split(':');
  if (status.code == StatusCode::InvalidArgument)
    status.message = "spec: " + llvm::convertToSnakeFromCamelCase(word) + ":" + rest.str();
  return finish(std::move(status));
}

void attn_cache_free(attn_cache *cache) { delete cache; }

attn_code attn_cache_grow(attn_cache *cache, int64_t sequence, int64_t tokens) {
  return cache ? finish(cache->cache->grow(sequence, tokens)) : failNull("cache");
}

attn_code attn_cache_share(attn_cache *cache, int64_t from, int64_t to, int64_t tokens,
                           int64_t *shared) {
  if (!cache || !shared)
    return failNull(!cache ? "cache" : "shared");
  *shared = 0;
  Result<int64_t> count = cache->cache->share(from, to, tokens);
  if (!count)
    return finish(count.takeStatus());
  *shared = *count;
  return ATTN_OK;
}

attn_code attn_cache_release(attn_cache *cache, int64_t sequence, void *stream) {
  return cache ? finish(cache->cache->release(sequence, stream)) : failNull("cache");
}

attn_code attn_cache_trim(attn_cache *cache) {
  return cache ? finish(cache->cache->trim()) : failNull("cache");
}

attn_code attn_cache_tensor(const attn_cache *cache, int64_t layer, int32_t is_value,
                            attn_tensor *tensor) {
  if (!cache || !tensor)
    return failNull(!cache ? "cache" : "tensor");
  Result<TensorView> view =
      is_value ? cache->cache->getValues(layer) : cache->cache->getKeys(layer);
  if (!view)
    return finish(view.takeStatus());
  int device = cache->cache->getSpec().device;
  const auto *element =
      llvm::find_if(elements, [&](const Element &at) { return at.type == view->type; });
  *tensor = {view->data,
             {device < 0 ? ATTN_DL_CPU : ATTN_DL_CUDA, std::max(device, 0)},
             view->rank,
             {element->code, element->bits, 1},
             const_cast<int64_t *>(view->shape),
             const_cast<int64_t *>(view->strides),
             0};
  return ATTN_OK;
}

attn_code attn_cache_export(const attn_cache *cache, int64_t layer, int32_t is_value,
                            void **managed) {
  if (!cache || !managed)
    return failNull(!cache ? "cache" : "managed");
  *managed = nullptr;
  attn_tensor tensor;
  if (attn_code code = attn_cache_tensor(cache, layer, is_value, &tensor))
    return code;
  using Owner = std::shared_ptr<VirtualCache>;
  *managed = new ManagedTensor{tensor, new Owner(cache->cache), [](ManagedTensor *self) {
                                 delete static_cast<Owner *>(self->owner);
                                 delete self;
                               }};
  return ATTN_OK;
}

int64_t attn_cache_tokens(const attn_cache *cache, int64_t sequence) {
  return cache ? cache->cache->getTokens(sequence) : -1;
}

int64_t attn_cache_bytes(const attn_cache *cache) { return cache ? cache->cache->getBytes() : 0; }

int64_t attn_cache_piece_tokens(const attn_cache *cache) {
  return cache ? cache->cache->getPieceTokens() : 0;
}
