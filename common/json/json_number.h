#ifndef SLIPSTREAM_DEPLOY_PSCTL_JSON_NUMBER_H_
#define SLIPSTREAM_DEPLOY_PSCTL_JSON_NUMBER_H_

#include <cmath>
#include <nlohmann/json.hpp>

namespace slipstream {

/// JSON knows neither infinities nor NaN: the loss of a run that diverged is null there.
inline nlohmann::ordered_json NumberOrNull(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_JSON_NUMBER_H_
