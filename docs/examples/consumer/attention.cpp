// Attention with a score of its own, from C++: find_package(attn), attn::attn.
#include <attn-c/attn.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

static const char source[] = R"(
func.func @attention(%q: tensor<?x?x?x32xf32>, %k: tensor<?x?x?x32xf32>, %v: tensor<?x?x?x32xf32>,
                     %slopes: tensor<?xf32>) -> tensor<?x?x?x32xf32> {
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %slope = tensor.extract %slopes[%h] : tensor<?xf32>
      %position = arith.index_cast %n : index to i64
      %f = arith.sitofp %position : i64 to f32
      %bias = arith.mulf %slope, %f : f32
      %t = arith.addf %s, %bias : f32
      attn.yield %t : f32
    }
    : tensor<?x?x?x32xf32>, tensor<?x?x?x32xf32>, tensor<?x?x?x32xf32> -> tensor<?x?x?x32xf32>
  return %o : tensor<?x?x?x32xf32>
})";

static std::vector<float> make(int64_t count, int64_t seed) {
  std::vector<float> data;
  for (int64_t i = 0; i < count; ++i)
    data.push_back(static_cast<float>((i * 37 + seed) % 17) / 8 - 1);
  return data;
}

static int fail(const attn::Status &status) {
  std::fprintf(stderr, "%s\n", status.str().c_str());
  return 1;
}

/// The definition: one number of the first column, of a row that sees so many keys. `slope` is that
/// of the score, and `rest` a weight that no key has.
static double define(const float *q, const float *k, const float *v, int64_t columns, int64_t keys,
                     double slope, double rest) {
  double total = rest, sum = 0;
  for (int64_t n = 0; n < keys; ++n) {
    double s = 0;
    for (int64_t d = 0; d < columns; ++d)
      s += double(q[d]) * k[n * columns + d];
    double weight = std::exp(s / std::sqrt(double(columns)) + slope * double(n));
    total += weight;
    sum += weight * v[n * columns];
  }
  return sum / total;
}

static bool isNear(double got, double wanted) {
  if (std::abs(got - wanted) <= 1e-5)
    return true;
  std::fprintf(stderr, "expected %f, got %f\n", wanted, got);
  return false;
}

int main() {
  constexpr int64_t heads = 2, rows = 3, keys = 50, columns = 32;
  std::vector<float> q = make(heads * rows * columns, 1), k = make(heads * keys * columns, 2),
                     v = make(heads * keys * columns, 3), slopes = make(heads, 4), o(q.size());
  attn::Tensor query(q.data(), {1, heads, rows, columns}), key(k.data(), {1, heads, keys, columns}),
      value(v.data(), {1, heads, keys, columns}), output(o.data(), {1, heads, rows, columns});

  attn::Result<attn::Kernel> kernel = attn::compile(source);
  if (!kernel)
    return fail(kernel.status());
  if (attn::Status status =
          kernel->run({query, key, value, attn::Tensor(slopes.data(), {heads}), output});
      !status)
    return fail(status);

  // Of the last row of the last head.
  int64_t row = heads * rows - 1, first = (heads - 1) * keys;
  double wanted = define(&q[row * columns], &k[first * columns], &v[first * columns], columns, keys,
                         /*slope=*/slopes[heads - 1], /*rest=*/0);
  if (!isNear(o[row * columns], wanted))
    return 1;

  // The common attentions need no IR.
  attn::AttentionSpec spec;
  spec.headDim = columns;
  spec.causal = attn::Causal::BottomRight;
  spec.hasSink = true;
  attn::Result<attn::Kernel> common = attn::compile(spec);
  if (!common)
    return fail(common.status());
  if (attn::Status status =
          common->run({query, key, value, attn::Tensor(slopes.data(), {heads}), output});
      !status)
    return fail(status);
  // The first row of the first head sees all keys but the last two.
  wanted = define(q.data(), k.data(), v.data(), columns, keys - rows + 1, /*slope=*/0,
                  /*rest=*/std::exp(double(slopes[0])));
  if (!isNear(o[0], wanted))
    return 1;

  // Nor does a cache in pages, which a table finds: here pages of 10 keys with heads first.
  constexpr int64_t page = 10;
  std::vector<int32_t> table = {0, 1, 2, 3, 4}, lengths = {keys - 3};
  spec.pageSize = page;
  spec.hasLengths = true;
  attn::Result<attn::Kernel> paged = attn::compile(spec);
  if (!paged)
    return fail(paged.status());
  std::vector<int64_t> pool = {keys / page, page, heads, columns},
                       strides = {page * columns, columns, keys * columns, 1};
  if (attn::Status status = paged->run(
          {query, attn::Tensor(k.data(), pool, strides), attn::Tensor(v.data(), pool, strides),
           attn::Tensor(table.data(), {1, keys / page}), attn::Tensor(lengths.data(), {1}),
           attn::Tensor(slopes.data(), {heads}), output});
      !status)
    return fail(status);
  wanted = define(q.data(), k.data(), v.data(), columns, keys - 3 - rows + 1, /*slope=*/0,
                  /*rest=*/std::exp(double(slopes[0])));
  if (!isNear(o[0], wanted))
    return 1;

  spec.type = attn::Type::I8;
  if (attn::compile(spec))
    return 1;

  // Mistakes come back as values.
  if (kernel->values().size() != 5 || attn::compile(source, {{"splits", "many"}}) ||
      kernel->run({query, key}))
    return 1;
  std::printf("C++: as defined\n");
}
