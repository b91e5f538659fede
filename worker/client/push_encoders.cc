#include "worker/client/push_encoders.h"

namespace slipstream {

PushEncoders::PushEncoders(Encoding encoding, const ShardMap& map, uint32_t slots) {
  if (encoding == Encoding::kFp32) return;
  encoders_.resize(slots);
  for (std::vector<PushEncoder>& of_slot : encoders_) {
    for (uint32_t i = 0; i < map.shards(); ++i) {
      of_slot.emplace_back(encoding, map.range(ShardId{i}).size());
    }
  }
}

PushEncoder* PushEncoders::Of(ShardId shard, uint32_t slot) {
  return encoders_.empty() ? nullptr : &encoders_[slot][Value(shard)];
}

std::vector<std::span<float>> PushEncoders::errors() {
  std::vector<std::span<float>> errors;
  for (std::vector<PushEncoder>& of_slot : encoders_) {
    for (PushEncoder& encoder : of_slot) {
      if (RowOf(encoder.encoding()).feeds_error_back) errors.push_back(encoder.error());
    }
  }
  return errors;
}

}  // namespace slipstream
