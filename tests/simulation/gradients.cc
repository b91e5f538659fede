#include "tests/simulation/gradients.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/philox.h"

namespace slipstream {
namespace {

// Streams of the seed from here on: the noise of one mini-batch at one shard each.
constexpr uint64_t kNoiseStreams = uint64_t{1} << 32;
constexpr uint64_t kShardsMax = 8;

}  // namespace

Gradients::Gradients(const Scenario& scenario) : scenario_(scenario), is_taken_(kSlots) {
  for (uint32_t shard = 0; shard < scenario.shards; ++shard) {
    // In two appends: the operator+ of gcc 12 warns wrongly here.
    std::string name = "of-shard-";
    name += std::to_string(shard);
    PS_CHECK(layout_.Append(name, {kShardValues}).ok());
  }
}

std::vector<float> Gradients::InitialWeights() const {
  std::vector<float> weights(layout_.parameters());
  RandomStream noise(scenario_.seed, kNoiseStreams - 1);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i % kShardValues >= kSlots) weights[i] = noise.Uniform(-1, 1);
  }
  return weights;
}

Gradients::Gradient Gradients::Compute(uint64_t batch, std::span<const float> weights) {
  Gradient gradient = {.slot = static_cast<uint32_t>(batch),
                       .batch = batch,
                       .examples = scenario_.ExamplesOf(batch),
                       .values = std::vector<float>(weights.size())};
  if (is_taken_.at(gradient.slot)) {
    const auto first_spare = is_taken_.begin() + scenario_.batches_total();
    const auto spare = std::find(first_spare, is_taken_.end(), false);
    PS_CHECK(spare != is_taken_.end());
    gradient.slot = static_cast<uint32_t>(spare - is_taken_.begin());
  }
  is_taken_[gradient.slot] = true;
  const std::span<float> values = gradient.values;
  for (uint32_t shard = 0; shard < scenario_.shards; ++shard) {
    const size_t begin = size_t{shard} * kShardValues;
    values[begin + gradient.slot] = 1.0f;
    ComputeDense(scenario_.seed, batch, shard, weights.subspan(begin, kShardValues),
                 values.subspan(begin, kShardValues));
  }
  return gradient;
}

void Gradients::ComputeDense(uint64_t seed, uint64_t batch, uint32_t shard,
                             std::span<const float> weights, std::span<float> gradient) {
  RandomStream noise(seed, kNoiseStreams + batch * kShardsMax + shard);
  for (size_t i = kSlots; i < kShardValues; ++i) {
    gradient[i] = 0.05f * weights[i] + noise.Uniform(-0.5f, 0.5f);
  }
}

}  // namespace slipstream
