#include "worker/model/initial_values.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/philox.h"

namespace slipstream {
namespace {

// Separates these draws from all others that use the run's seed.
constexpr uint64_t kInitialValuesKey = 0x696e697469616c00;  // "initial"

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBias = ".bias";

// Returns the weight that decides a tensor's fan-in; nullptr if the tensor is neither a weight nor
// a bias.
const Tensor* DecidingWeight(const TensorLayout& layout, const Tensor& tensor) {
  const std::string_view name = tensor.name;
  if (name.ends_with(kWeight)) return &tensor;
  if (!name.ends_with(kBias)) return nullptr;
  const std::string stem(name.substr(0, name.size() - kBias.size()));
  return layout.Find(stem + std::string(kWeight));
}

/// Returns a number of the standard normal distribution, by the ratio of two uniform ones (Leva,
/// 1992). Other methods compute a logarithm, which differs between machines in its last digit; here
/// it only decides the few pairs between two bounds.
double Normal(RandomStream& random) {
  while (true) {
    const double u = 1 - double{random.Unit()};
    const double v = 1.7156 * (double{random.Unit()} - 0.5);
    const double x = u - 0.449871;
    const double y = std::abs(v) + 0.386595;
    const double q = x * x + y * (0.19600 * y - 0.25472 * x);
    if (q < 0.27597 || (q <= 0.27846 && v * v <= -4 * u * u * std::log(u))) return v / u;
  }
}

}  // namespace

void FillInitialValues(const TensorLayout& layout, uint64_t seed, std::span<float> weights,
                       const DeviationsByName& normal_weights) {
  PS_CHECK(weights.size() == layout.parameters());
  uint64_t stream = 0;
  for (const Tensor& tensor : layout.tensors()) {
    RandomStream random(seed ^ kInitialValuesKey, stream++);
    const std::span<float> values = weights.subspan(tensor.offset, tensor.size());
    const Tensor* weight = DecidingWeight(layout, tensor);
    if (weight == nullptr) {
      std::fill(values.begin(), values.end(), 0.0f);
      continue;
    }
    if (const auto normal = normal_weights.find(weight->name); normal != normal_weights.end()) {
      for (float& value : values) {
        value = weight == &tensor ? static_cast<float>(normal->second * Normal(random)) : 0.0f;
      }
      continue;
    }
    const size_t fan_in = weight->size() / weight->shape.front();
    const float bound = 1.0f / std::sqrt(static_cast<float>(fan_in));
    for (float& value : values) value = random.Uniform(-bound, bound);
  }
}

}  // namespace slipstream
