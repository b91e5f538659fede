#ifndef SLIPSTREAM_TESTS_SIMULATION_CHANCE_H_
#define SLIPSTREAM_TESTS_SIMULATION_CHANCE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/philox.h"

namespace slipstream {

/// Random draws for one part of the simulated world. Each part has its own stream, so that its
/// draws do not change those of another part.
///
/// Not thread-safe: one owner.
class Chance {
 public:
  Chance(uint64_t seed, uint64_t stream) : words_(seed, stream) {}

  /// Returns a uniform draw from [low, high].
  uint32_t Between(uint32_t low, uint32_t high) { return low + words_.Below(high - low + 1); }

  bool Happens(uint32_t per_mille) { return words_.Below(1000) < per_mille; }

  /// Returns a uniform draw from [low, high], in whole microseconds.
  /// REQUIRES: low <= high, at most an hour apart.
  absl::Duration Time(absl::Duration low, absl::Duration high) {
    const int64_t span = absl::ToInt64Microseconds(high - low);
    return low + absl::Microseconds(words_.Below(static_cast<uint32_t>(span) + 1));
  }

 private:
  RandomStream words_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_CHANCE_H_
