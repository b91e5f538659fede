#include "worker/compute/cpu/dropout.h"

#include <algorithm>
#include <cstddef>

#include "common/base/check.h"
#include "worker/compute/dropout_draws.h"

namespace slipstream {

void Dropout(const DropoutKey& key, float rate, std::span<const float> input,
             std::span<float> output) {
  PS_CHECK(input.size() == output.size());
  PS_CHECK(input.size() / DropoutDraws::kBlockElements < (uint64_t{1} << DropoutDraws::kBlockBits));
  PS_CHECK(key.layer < (uint32_t{1} << (64 - DropoutDraws::kBlockBits)));
  const DropoutDraws draws(key.seed, key.layer, rate);
  uint64_t block = 0;
  for (size_t begin = 0; begin < input.size(); begin += DropoutDraws::kBlockElements, ++block) {
    const Philox::Block words = draws.BlockAt(key.batch_index, block);
    const size_t end = std::min(begin + DropoutDraws::kBlockElements, input.size());
    for (size_t i = begin; i < end; ++i) output[i] = draws.Apply(words[i - begin], input[i]);
  }
}

}  // namespace slipstream
