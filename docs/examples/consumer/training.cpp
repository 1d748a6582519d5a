// Trains a small model of one causal attention in C++, and checks its gradient by differences:
// find_package(attn), attn::attn. The model learns queries, keys and the slopes of its distances so
// that its output is that of a teacher.
#include <attn-c/attn.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

static constexpr int64_t kHeads = 2, kLength = 24, kColumns = 16;

struct Array {
  std::vector<int64_t> shape;
  std::vector<float> data;

  explicit Array(std::vector<int64_t> shape) : shape(std::move(shape)) {
    int64_t count = 1;
    for (int64_t extent : this->shape)
      count *= extent;
    data.resize(static_cast<size_t>(count));
  }
  attn::Tensor tensor() { return attn::Tensor(data.data(), shape); }
};

static void check(const attn::Status &status) {
  if (status)
    return;
  std::fprintf(stderr, "%s\n", status.str().c_str());
  std::exit(1);
}

struct Model {
  Array query{{1, kHeads, kLength, kColumns}}, key{query.shape}, value{query.shape},
      slopes{{kHeads}};
  Array dQuery{query.shape}, dKey{key.shape}, dValue{value.shape}, dSlopes{slopes.shape};
  Array output{query.shape}, dOutput{query.shape}, lse{{1, kHeads, kLength}};

  /// Half of the squared distance from the wanted output, a number for each row.
  double computeLoss(const attn::Training &attention, const Array &wanted) {
    check(attention.forward.run({query.tensor(), key.tensor(), value.tensor(), slopes.tensor(),
                                 output.tensor(), lse.tensor()}));
    double loss = 0;
    for (size_t i = 0; i < wanted.data.size(); ++i) {
      dOutput.data[i] = (output.data[i] - wanted.data[i]) / kLength;
      loss += 0.5 * dOutput.data[i] * dOutput.data[i] * kLength;
    }
    return loss;
  }

  void computeGradients(const attn::Training &attention) {
    check(attention.backward.run({query.tensor(), key.tensor(), value.tensor(), slopes.tensor(),
                                  output.tensor(), lse.tensor(), dOutput.tensor(), dQuery.tensor(),
                                  dKey.tensor(), dValue.tensor(), dSlopes.tensor()}));
  }
};

/// Adam, for one array.
struct Optimizer {
  Array &parameter, &gradient;
  std::vector<double> mean = std::vector<double>(parameter.data.size()), square = mean;

  void step(int number, double rate) {
    for (size_t i = 0; i < mean.size(); ++i) {
      double g = gradient.data[i];
      mean[i] = 0.9 * mean[i] + 0.1 * g;
      square[i] = 0.99 * square[i] + 0.01 * g * g;
      double first = mean[i] / (1 - std::pow(0.9, number)),
             second = square[i] / (1 - std::pow(0.99, number));
      parameter.data[i] -= static_cast<float>(rate * first / (std::sqrt(second) + 1e-9));
    }
  }
};

int main() {
  // On a GPU, calls may compile kernels; this is who hears of it.
  attn::setLog([](const std::string &line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  attn::AttentionSpec spec;
  spec.headDim = kColumns;
  spec.causal = attn::Causal::BottomRight;
  spec.hasAlibi = true;
  spec.softcap = 20;
  attn::Result<attn::Training> attention = attn::compileTraining(spec);
  if (!attention)
    check(attention.status());

  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Model teacher, student;
  for (Array *array : {&teacher.query, &teacher.key, &teacher.value, &student.query, &student.key})
    for (float &x : array->data)
      x = normal(random);
  student.value = teacher.value;
  teacher.slopes.data = {0.5f, 0.1f};
  student.slopes.data = {0.2f, 0.2f};
  teacher.computeLoss(*attention, teacher.output);
  const Array wanted = teacher.output;

  // Each gradient against the difference of two losses.
  student.computeLoss(*attention, wanted);
  student.computeGradients(*attention);
  struct Checked {
    const char *name;
    Array &parameter, gradient;
  } all[] = {{"query", student.query, student.dQuery},
             {"key", student.key, student.dKey},
             {"value", student.value, student.dValue},
             {"slopes", student.slopes, student.dSlopes}};
  for (Checked &checked : all) {
    size_t at = checked.parameter.data.size() / 2;
    float &x = checked.parameter.data[at], kept = x;
    x = kept + 0.0078125f;
    double above = student.computeLoss(*attention, wanted);
    x = kept - 0.0078125f;
    double difference = (above - student.computeLoss(*attention, wanted)) / 0.015625;
    x = kept;
    double gradient = checked.gradient.data[at];
    if (!(std::abs(gradient - difference) <= 0.02 * std::abs(difference) + 1e-5)) {
      std::fprintf(stderr, "gradient of %s: expected %g, got %g\n", checked.name, difference,
                   gradient);
      return 1;
    }
  }

  Optimizer optimizers[] = {{student.query, student.dQuery},
                            {student.key, student.dKey},
                            {student.slopes, student.dSlopes}};
  double first = student.computeLoss(*attention, wanted), last = first;
  for (int step = 1; step <= 300; ++step) {
    student.computeGradients(*attention);
    for (Optimizer &optimizer : optimizers)
      optimizer.step(step, 0.02);
    last = student.computeLoss(*attention, wanted);
  }
  std::printf("C++: the loss fell from %.3f to %.3f; slopes %.2f and %.2f\n", first, last,
              student.slopes.data[0], student.slopes.data[1]);
  attn::setLog(nullptr);
  return last < first / 20 ? 0 : 1;
}
