// Attention with a score of its own, from C++: find_package(attn), attn::attn.
#include <attn-c/attn.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
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

static void check(attn_code code) {
  if (code == ATTN_OK)
    return;
  std::fprintf(stderr, "%s: %s\n", attn_code_name(code), attn_last_message());
  std::exit(1);
}

/// A row-major array that describes itself.
struct Array {
  std::vector<int64_t> shape;
  std::vector<float> data;
  attn_tensor tensor = {};

  Array(std::vector<int64_t> extents, unsigned seed) : shape(std::move(extents)) {
    size_t count = 1;
    for (int64_t extent : shape)
      count *= static_cast<size_t>(extent);
    for (size_t i = 0; i < count; ++i)
      data.push_back(static_cast<float>((i * 37 + seed) % 17) / 8 - 1);
    tensor.data = data.data();
    tensor.device.device_type = ATTN_DL_CPU;
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype.code = ATTN_DL_FLOAT;
    tensor.dtype.bits = 32;
    tensor.dtype.lanes = 1;
    tensor.shape = shape.data();
  }
};

int main() {
  constexpr int64_t heads = 2, rows = 3, keys = 50, columns = 32;
  Array q({1, heads, rows, columns}, 1), k({1, heads, keys, columns}, 2),
      v({1, heads, keys, columns}, 3), slopes({heads}, 4), o({1, heads, rows, columns}, 0);

  attn_kernel *compiled = nullptr;
  check(attn_compile(source, nullptr, &compiled));
  std::unique_ptr<attn_kernel, decltype(&attn_kernel_free)> kernel(compiled, attn_kernel_free);
  const attn_tensor *tensors[] = {&q.tensor, &k.tensor, &v.tensor, &slopes.tensor, &o.tensor};
  check(attn_run(kernel.get(), tensors, 5, nullptr));

  // The definition, of the last row of the last head.
  int64_t row = heads * rows - 1, first = (heads - 1) * keys;
  double total = 0, sum = 0;
  for (int64_t n = 0; n < keys; ++n) {
    double s = 0;
    for (int64_t d = 0; d < columns; ++d)
      s += double(q.data[row * columns + d]) * k.data[(first + n) * columns + d];
    double weight = std::exp(s / std::sqrt(double(columns)) + slopes.data[heads - 1] * double(n));
    total += weight;
    sum += weight * v.data[(first + n) * columns];
  }
  double got = o.data[row * columns];
  if (std::abs(got - sum / total) > 1e-5) {
    std::fprintf(stderr, "expected %f, got %f\n", sum / total, got);
    return 1;
  }
  std::printf("C++: as defined\n");
}
