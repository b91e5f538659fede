#ifndef SLIPSTREAM_COMMON_JSON_JSON_NUMBER_H_
#define SLIPSTREAM_COMMON_JSON_JSON_NUMBER_H_

#include <cmath>
#include <nlohmann/json.hpp>

namespace slipstream {

/// Returns null for infinities and NaN, such as the loss of a run that diverged: JSON has neither.
inline nlohmann::ordered_json NumberOrNull(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_JSON_JSON_NUMBER_H_
