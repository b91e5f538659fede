#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_SWEEP_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_SWEEP_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace slipstream {

/// Reads "workers=1..64", which doubles from 1 on and ends with 64, or "workers=1,2,30", or both
/// mixed; nothing if it is neither, or not within [1, kWorkersMax]. The numbers rise.
std::optional<std::vector<uint32_t>> ParseSweep(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_SWEEP_H_
