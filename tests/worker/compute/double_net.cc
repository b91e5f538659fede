#include "tests/worker/compute/double_net.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <variant>

#include "worker/compute/cpu/dropout.h"

namespace slipstream {
namespace {

using Values = std::vector<double>;

/// Computes one layer for a whole batch.
struct Layer {
  const NetShapes& shapes;
  std::span<const double> weights;
  const Values& input;
  size_t index;
  size_t count;
  uint64_t seed;
  uint64_t batch_index;
  bool training;

  const ExampleShape& in() const { return shapes.shapes[index]; }
  const ExampleShape& out() const { return shapes.shapes[index + 1]; }

  double At(size_t example, size_t channel, int64_t y, int64_t x) const {
    if (y < 0 || x < 0 || y >= in().height || x >= in().width) return 0;
    const size_t row = (example * in().channels + channel) * in().height + static_cast<size_t>(y);
    return input[row * in().width + static_cast<size_t>(x)];
  }

  std::span<const double> Parameter(const std::string& name) const {
    const Tensor* tensor = shapes.layout.Find(std::to_string(index) + name);
    return weights.subspan(tensor->offset, tensor->size());
  }

  // Calls value(example, channel, y, x) for every output and returns the results.
  template <typename Value>
  Values ForEachOutput(Value value) const {
    Values output;
    for (size_t n = 0; n < count; ++n) {
      for (uint32_t c = 0; c < out().channels; ++c) {
        for (uint32_t y = 0; y < out().height; ++y) {
          for (uint32_t x = 0; x < out().width; ++x) output.push_back(value(n, c, y, x));
        }
      }
    }
    return output;
  }

  Values operator()(const DenseLayer&) const {
    const auto weight = Parameter(".weight");
    const auto bias = Parameter(".bias");
    return ForEachOutput([&](size_t n, uint32_t unit, uint32_t, uint32_t) {
      double sum = bias[unit];
      for (size_t i = 0; i < in().channels; ++i) {
        sum += weight[unit * in().channels + i] * input[n * in().channels + i];
      }
      return sum;
    });
  }

  Values operator()(const Conv2dLayer& layer) const {
    const auto weight = Parameter(".weight");
    const auto bias = Parameter(".bias");
    return ForEachOutput([&](size_t n, uint32_t to, uint32_t y, uint32_t x) {
      double sum = bias[to];
      size_t w = size_t{to} * in().channels * layer.kernel * layer.kernel;
      for (uint32_t from = 0; from < in().channels; ++from) {
        for (uint32_t ky = 0; ky < layer.kernel; ++ky) {
          for (uint32_t kx = 0; kx < layer.kernel; ++kx) {
            const int64_t in_y = int64_t{y} * layer.stride + ky - layer.padding;
            const int64_t in_x = int64_t{x} * layer.stride + kx - layer.padding;
            sum += weight[w++] * At(n, from, in_y, in_x);
          }
        }
      }
      return sum;
    });
  }

  Values operator()(const PoolLayer& layer) const {
    return ForEachOutput([&](size_t n, uint32_t c, uint32_t y, uint32_t x) {
      double sum = 0, largest = -std::numeric_limits<double>::infinity();
      int inside = 0;
      for (uint32_t in_y = y * layer.stride; in_y < y * layer.stride + layer.kernel; ++in_y) {
        for (uint32_t in_x = x * layer.stride; in_x < x * layer.stride + layer.kernel; ++in_x) {
          if (in_y >= in().height || in_x >= in().width) continue;
          const double value = At(n, c, in_y, in_x);
          sum += value;
          largest = std::max(largest, value);
          ++inside;
        }
      }
      return layer.kind == PoolLayer::Kind::kMax ? largest : sum / inside;
    });
  }

  Values operator()(const LrnLayer& layer) const {
    const auto reach = static_cast<int64_t>(layer.size / 2);
    const bool is_within = layer.region == LrnLayer::Region::kWithin;
    const double share = layer.alpha / std::pow(layer.size, is_within ? 2 : 1);
    return ForEachOutput([&](size_t n, uint32_t c, int64_t y, int64_t x) {
      double squares = 0;
      for (int64_t a = -reach; a <= reach; ++a) {
        if (is_within) {
          for (int64_t b = -reach; b <= reach; ++b) squares += std::pow(At(n, c, y + a, x + b), 2);
        } else if (int64_t{c} + a >= 0 && int64_t{c} + a < in().channels) {
          squares += std::pow(At(n, static_cast<size_t>(c + a), y, x), 2);
        }
      }
      return At(n, c, y, x) / std::pow(1 + share * squares, layer.beta);
    });
  }

  Values operator()(const ReluLayer&) const {
    Values output = input;
    for (double& value : output) value = std::max(value, 0.0);
    return output;
  }

  Values operator()(const TanhLayer&) const {
    Values output = input;
    for (double& value : output) value = std::tanh(value);
    return output;
  }

  Values operator()(const DropoutLayer& layer) const {
    if (!training) return input;
    std::vector<float> factors(input.size(), 1.0f);
    Dropout({seed, batch_index, static_cast<uint32_t>(index)}, layer.rate, factors, factors);
    Values output = input;
    for (size_t i = 0; i < output.size(); ++i) output[i] *= factors[i];
    return output;
  }

  Values operator()(const FlattenLayer&) const { return input; }
};

}  // namespace

DoubleNet::DoubleNet(const ModelSpec& model, uint64_t dropout_seed)
    : model_(model),
      shapes_(std::get<NetShapes>(InferShapes(model))),
      dropout_seed_(dropout_seed) {}

double DoubleNet::Loss(std::span<const double> weights, const Batch& batch, bool training) const {
  const size_t count = batch.examples.size() / shapes_.input().elements();
  Values values(batch.examples.begin(), batch.examples.end());
  for (size_t i = 0; i < model_.layers.size(); ++i) {
    const Layer layer = {shapes_, weights, values, i, count, dropout_seed_, batch.index, training};
    values = std::visit(layer, model_.layers[i]);
  }
  double loss = 0;
  if (model_.loss == ModelSpec::Loss::kMse) {
    for (size_t i = 0; i < values.size(); ++i) loss += std::pow(values[i] - batch.targets[i], 2);
    return loss / static_cast<double>(values.size());
  }
  for (size_t n = 0; n < count; ++n) {
    double sum = 0;
    for (size_t c = 0; c < shapes_.outputs(); ++c)
      sum += std::exp(values[n * shapes_.outputs() + c]);
    loss += std::log(sum) - values[n * shapes_.outputs() + batch.labels[n]];
  }
  return loss / static_cast<double>(count);
}

std::vector<float> DoubleNet::Gradients(std::span<const float> weights, const Batch& batch) const {
  // The error has three parts: rounding, 1e-16 / step; curvature, step²; and a larger one if a kink
  // lies within a step of a value. At 1e-6 the first is 1e-10, and the last is rare.
  constexpr double kStep = 1e-6;
  Values moved(weights.begin(), weights.end());
  std::vector<float> gradients;
  for (double& weight : moved) {
    const double middle = weight;
    weight = middle + kStep;
    const double above = Loss(moved, batch, true);
    weight = middle - kStep;
    const double below = Loss(moved, batch, true);
    weight = middle;
    gradients.push_back(static_cast<float>((above - below) / (2 * kStep)));
  }
  return gradients;
}

}  // namespace slipstream
