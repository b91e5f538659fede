#ifndef SLIPSTREAM_COMMON_MODEL_MODEL_SPEC_H_
#define SLIPSTREAM_COMMON_MODEL_MODEL_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace slipstream {

/// The layers of a sequential net, as a user writes them. Shapes follow from the input's shape
/// (common/model/net_shapes.h); nothing here has been checked for consistency.

/// Fully connected: y = W x + b, W is [units, inputs].
struct DenseLayer {
  uint32_t units = 0;

  /// The standard deviation of the normal distribution that the initial weights are drawn from,
  /// beside biases of 0; nothing for the default (worker/model/initial_values.h).
  std::optional<float> init_normal = std::nullopt;
  friend bool operator==(const DenseLayer&, const DenseLayer&) = default;
};

/// 2-D cross-correlation with bias: weights [channels, input channels, kernel, kernel], stride 1
/// unless said otherwise, zero padding on all four sides.
struct Conv2dLayer {
  uint32_t channels = 0;
  uint32_t kernel = 0;
  uint32_t stride = 1;
  uint32_t padding = 0;
  std::optional<float> init_normal = std::nullopt;  // As of a dense layer.
  friend bool operator==(const Conv2dLayer&, const Conv2dLayer&) = default;
};

/// Max or average over kernel × kernel windows. With `ceil`, a last partial window counts
/// (PyTorch's ceil_mode); an average divides by the number of elements inside the input.
struct PoolLayer {
  enum class Kind { kMax, kAverage };
  Kind kind = Kind::kMax;
  uint32_t kernel = 2;
  uint32_t stride = 2;
  bool ceil = false;
  friend bool operator==(const PoolLayer&, const PoolLayer&) = default;
};

/// Local response normalisation: y = x / (1 + α/N Σ x²)^β, the sum over the window around x, which
/// is size × size values of one channel (cuda-convnet's rnorm, Caffe's WITHIN_CHANNEL) or those of
/// `size` channels in one place (AlexNet's). N is the values of a whole window; those beyond the
/// image count as 0. Sizes are odd.
struct LrnLayer {
  enum class Region { kWithin, kAcross };
  Region region = Region::kWithin;
  uint32_t size = 3;
  float alpha = 5e-5f;
  float beta = 0.75f;
  friend bool operator==(const LrnLayer&, const LrnLayer&) = default;
};

struct ReluLayer {
  friend bool operator==(const ReluLayer&, const ReluLayer&) = default;
};

struct TanhLayer {
  friend bool operator==(const TanhLayer&, const TanhLayer&) = default;
};

/// Zeroes each element with probability `rate` in training and scales the others by 1/(1 − rate).
struct DropoutLayer {
  float rate = 0.5f;
  friend bool operator==(const DropoutLayer&, const DropoutLayer&) = default;
};

struct FlattenLayer {
  friend bool operator==(const FlattenLayer&, const FlattenLayer&) = default;
};

using LayerSpec = std::variant<DenseLayer, Conv2dLayer, PoolLayer, LrnLayer, ReluLayer, TanhLayer,
                               DropoutLayer, FlattenLayer>;

/// A net and its loss, which compares outputs with targets.
struct ModelSpec {
  enum class Loss {
    kCrossEntropy,  // Compares softmax over the last layer's outputs with a class per example.
    kMse,           // Squared difference of outputs and targets, mean over all of a batch's values.
  };

  /// A name of common/model/presets.h; empty if `input` and `layers` were given by hand.
  std::string preset;

  /// Channels, height, width of one example.
  std::vector<uint32_t> input;
  std::vector<LayerSpec> layers;
  Loss loss = Loss::kCrossEntropy;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_MODEL_SPEC_H_
