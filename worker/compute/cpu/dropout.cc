#include "worker/compute/cpu/dropout.h"

#include <algorithm>
#include <cstddef>

#include "common/base/check.h"
#include "common/base/philox.h"

namespace slipstream {
namespace {

// Keeps these draws apart from whatever else is drawn under the run's seed.
constexpr uint64_t kDropoutKey = 0x64726f706f757400;  // "dropout"

// A block of four words is numbered by its place in the mini-batch and, above that, the layer.
constexpr int kBlockBits = 40;

}  // namespace

void Dropout(const DropoutKey& key, float rate, std::span<const float> input,
             std::span<float> output) {
  PS_CHECK(input.size() == output.size());
  PS_CHECK(input.size() / 4 < (uint64_t{1} << kBlockBits));
  PS_CHECK(key.layer < (uint32_t{1} << (64 - kBlockBits)));
  const Philox philox(key.seed ^ kDropoutKey);
  const float scale = 1.0f / (1.0f - rate);
  const auto dropped_below = static_cast<uint64_t>(static_cast<double>(rate) * 0x1p32);
  uint64_t block = uint64_t{key.layer} << kBlockBits;
  for (size_t begin = 0; begin < input.size(); begin += 4, ++block) {
    const Philox::Block words = philox.At(block, key.batch_index);
    const size_t end = std::min(begin + 4, input.size());
    for (size_t i = begin; i < end; ++i) {
      output[i] = words[i - begin] < dropped_below ? 0.0f : input[i] * scale;
    }
  }
}

}  // namespace slipstream
