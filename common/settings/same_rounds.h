#ifndef SLIPSTREAM_COMMON_SETTINGS_SAME_ROUNDS_H_
#define SLIPSTREAM_COMMON_SETTINGS_SAME_ROUNDS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/settings/consistency_spec.h"

namespace slipstream {

/// Returns the largest n that means the same among so many workers, if that is not the n that the
/// policy is told: an update combines ⌊workers/n⌋ gradients, which is 1 for 18 as for 30 of 30
/// workers.
constexpr std::optional<uint32_t> LargerSameN(const ConsistencySpec& consistency,
                                              uint32_t workers) {
  constexpr std::string_view kN = "n";
  const ParameterKeys& keys = RowOf(consistency.policy).parameters;
  const bool has_n = std::ranges::find(keys, kN) != keys.end() && consistency.parameters.IsOn(kN);
  const uint32_t largest = workers / consistency.round_size(workers);
  if (!has_n || largest <= consistency.parameters[kN]) return std::nullopt;
  return largest;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_SAME_ROUNDS_H_
