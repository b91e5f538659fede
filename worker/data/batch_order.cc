#include "worker/data/batch_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/base/philox.h"

namespace slipstream {
namespace {

// Separates these random streams from those that other parts draw from the same seed.
constexpr uint64_t kOrderStreams = uint64_t{'O'} << 56;

constexpr uint64_t kNoEpoch = std::numeric_limits<uint64_t>::max();

}  // namespace

BatchOrder::BatchOrder(size_t examples, uint32_t batch_size, uint64_t seed)
    : examples_(examples),
      batch_size_(batch_size),
      seed_(seed),
      batches_per_epoch_(batch_size > 0 ? (examples + batch_size - 1) / batch_size : 0),
      permutation_(examples),
      permuted_epoch_(kNoEpoch) {
  PS_CHECK(examples > 0 && examples <= std::numeric_limits<uint32_t>::max());
  PS_CHECK(batch_size > 0);
}

std::span<const uint32_t> BatchOrder::Examples(uint64_t index) {
  const uint64_t epoch = index / batches_per_epoch_;
  if (epoch != permuted_epoch_) Permute(epoch);

  const size_t begin = static_cast<size_t>(index % batches_per_epoch_) * batch_size_;
  const size_t size = std::min<size_t>(batch_size_, examples_ - begin);
  return std::span<const uint32_t>(permutation_).subspan(begin, size);
}

void BatchOrder::Permute(uint64_t epoch) {
  RandomStream random(seed_, kOrderStreams | epoch);
  std::iota(permutation_.begin(), permutation_.end(), 0u);
  for (size_t i = examples_ - 1; i > 0; --i) {
    std::swap(permutation_[i], permutation_[random.Below(static_cast<uint32_t>(i + 1))]);
  }
  permuted_epoch_ = epoch;
}

}  // namespace slipstream
