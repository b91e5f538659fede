#ifndef SLIPSTREAM_COMMON_MODEL_FILE_WEIGHTS_DIGEST_H_
#define SLIPSTREAM_COMMON_MODEL_FILE_WEIGHTS_DIGEST_H_

#include <span>
#include <string>

namespace slipstream {

/// Returns the SHA-256 of the weights as little-endian fp32 in layout order, in lower-case hex. It
/// is equal for equal models, however many shards hold them.
std::string WeightsSha256(std::span<const float> weights);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_FILE_WEIGHTS_DIGEST_H_
