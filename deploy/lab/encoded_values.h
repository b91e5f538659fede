#ifndef SLIPSTREAM_DEPLOY_LAB_ENCODED_VALUES_H_
#define SLIPSTREAM_DEPLOY_LAB_ENCODED_VALUES_H_

#include <optional>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/values_codec.h"
#include "worker/client/push_encoder.h"

namespace slipstream {

/// Returns the shard's part of a gradient as it arrives after the encoder has encoded it.
inline ReceivedValues EncodedValues(PushEncoder& encoder, std::span<const float> part) {
  encoder.Begin();
  absl::StatusOr<PushChunk> chunk = DecodePushChunk(
      EncodePushChunk(std::nullopt, 0, encoder.Encode(part, 0, part.size()), encoder.encoding()));
  PS_CHECK(chunk.ok());
  return std::move(chunk->values);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_ENCODED_VALUES_H_
