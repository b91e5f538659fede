#include "worker/client/push_encoders.h"

#include "common/base/check.h"
#include "common/settings/tensor_options.h"

namespace slipstream {

PushEncoders::PushEncoders(Encoding encoding, const ShardMap& map, size_t slots,
                           const Frozen& frozen) {
  PS_CHECK(frozen.empty() || frozen.size() == map.shards());
  if (encoding == Encoding::kFp32) return;
  encoders_.resize(slots);
  for (std::vector<PushEncoder>& of_slot : encoders_) {
    for (uint32_t i = 0; i < map.shards(); ++i) {
      of_slot.emplace_back(encoding, map.range(ShardId{i}).size(),
                           frozen.empty() ? std::vector<ParameterRange>() : frozen[i]);
    }
  }
}

PushEncoders::Frozen PushEncoders::FrozenIn(const RunSpec& run, const TensorLayout& layout,
                                            const ShardMap& map) {
  const OptimizerSpec servers = run.server_optimizer();
  Frozen frozen(map.shards());
  if (servers.per_tensor.empty()) return frozen;
  for (uint32_t i = 0; i < map.shards(); ++i) {
    frozen[i] = FrozenWithin(map.range(ShardId{i}), layout, servers.per_tensor);
  }
  return frozen;
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
