#ifndef SLIPSTREAM_COMMON_BASE_PHILOX_H_
#define SLIPSTREAM_COMMON_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace slipstream {

/// Philox4x32-10, a counter-based generator (Salmon et al., SC'11): the same key and counter give
/// the same four words on every machine and in any order, so nothing random depends on history.
///
/// Thread-safe: const after construction.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  explicit constexpr Philox(uint64_t key)
      : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)} {}

  constexpr Block At(uint64_t low, uint64_t high = 0) const {
    Block counter = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                     static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
    uint32_t key0 = key_[0];
    uint32_t key1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
                 static_cast<uint32_t>(product1),
                 static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
                 static_cast<uint32_t>(product0)};
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    return counter;
  }

 private:
  std::array<uint32_t, 2> key_;
};

/// A stream of numbers over Philox: one (seed, stream) pair gives one sequence for ever. The
/// standard library's distributions differ between implementations; these do not.
///
/// Not thread-safe: one owner.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : philox_(seed), stream_(stream) {}

  uint32_t NextWord() {
    if (used_ == 4) {
      block_ = philox_.At(position_++, stream_);
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Returns a number uniform in [0, bound), without bias. REQUIRES: bound > 0.
  uint32_t Below(uint32_t bound) {
    // Lemire, 2019: reject the few words that would make low values likelier.
    uint64_t product = uint64_t{NextWord()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = (0u - bound) % bound;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{NextWord()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }

  /// Returns a multiple of 2⁻²⁴, uniform in [0, 1).
  float Unit() { return static_cast<float>(NextWord() >> 8) * 0x1p-24f; }

  /// Returns a number uniform in [low, high).
  float Uniform(float low, float high) { return low + (high - low) * Unit(); }

 private:
  Philox philox_;
  uint64_t stream_;
  uint64_t position_ = 0;
  Philox::Block block_ = {};
  int used_ = 4;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_PHILOX_H_
