#ifndef SLIPSTREAM_WORKER_COMPUTE_DROPOUT_DRAWS_H_
#define SLIPSTREAM_WORKER_COMPUTE_DROPOUT_DRAWS_H_

#include <cstdint>

#include "common/base/philox.h"

namespace slipstream {

/// The random words of a dropout layer: one for each element of a mini-batch, four at a time. They
/// are equal on every device, so every device drops the same elements of a mini-batch.
///
/// Thread-safe: const after construction.
class DropoutDraws {
 public:
  static constexpr uint32_t kBlockElements = 4;

  /// The number of bits for the blocks of one mini-batch; the rest of the 64 bits numbers the
  /// layers.
  static constexpr int kBlockBits = 40;

  /// `seed` is the run's. REQUIRES: layer < 2²⁴, 0 ≤ rate < 1.
  constexpr DropoutDraws(uint64_t seed, uint32_t layer, float rate)
      : philox_(seed ^ kDropoutKey),
        first_block_(uint64_t{layer} << kBlockBits),
        dropped_below_(static_cast<uint64_t>(static_cast<double>(rate) * 0x1p32)),
        scale_(1.0f / (1.0f - rate)) {}

  /// Returns the words of the elements [4 block, 4 block + 4). REQUIRES: block < 2⁴⁰.
  constexpr Philox::Block BlockAt(uint64_t batch_index, uint64_t block) const {
    return philox_.At(first_block_ + block, batch_index);
  }

  /// Returns the result for an element, or for its gradient: zero if it is dropped, else scaled.
  constexpr float Apply(uint32_t word, float value) const {
    return word < dropped_below_ ? 0.0f : value * scale_;
  }

 private:
  // Separates these draws from all others that use the run's seed.
  static constexpr uint64_t kDropoutKey = 0x64726f706f757400;  // "dropout"

  Philox philox_;
  uint64_t first_block_;
  uint64_t dropped_below_;
  float scale_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_DROPOUT_DRAWS_H_
