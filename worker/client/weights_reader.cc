#include "worker/client/weights_reader.h"

#include <algorithm>

namespace slipstream {
namespace {

constexpr int kTriesMax = 5;

}  // namespace

absl::StatusOr<WeightsReader::Reading> WeightsReader::Read(std::span<float> weights) {
  std::vector<WeightsHeader> headers(group_.map().shards());
  absl::Status status = Pull(group_.all(), {}, weights, headers);
  const auto is_in_step = [&] {
    return std::ranges::all_of(headers, [](const WeightsHeader& header) {
      return header.stamp.has_value() && header.stamp->publisher == Incarnation{};
    });
  };
  for (int i = 0; status.ok() && i < kTriesMax && is_in_step(); ++i) {
    const Age newest = AgeOf(std::ranges::max(headers, {}, AgeOf));
    std::vector<ShardId> behind;
    for (const ShardId shard : group_.all()) {
      if (AgeOf(headers[Value(shard)]) < newest) behind.push_back(shard);
    }
    if (behind.empty()) break;
    status = Pull(behind, newest, weights, headers);
  }
  if (!status.ok()) return status;
  Reading reading;
  for (const WeightsHeader& header : headers) reading.versions.push_back(header.version);
  reading.examples = std::ranges::min(headers, {}, &WeightsHeader::examples).examples;
  return reading;
}

absl::Status WeightsReader::Pull(const std::vector<ShardId>& shards, const Age& oldest,
                                 std::span<float> weights, std::vector<WeightsHeader>& headers) {
  const PullRequest request = {.identity = identity_,
                               .shard_map = group_.map().fingerprint(),
                               .min_version = oldest.second,
                               .min_life = oldest.first};
  return group_.Run(shards, [&](ShardClient& shard) {
    const absl::StatusOr<ShardClient::Pulled> pulled =
        shard.Pull(request, shard.ArrivalOf(weights, nullptr));
    if (pulled.ok()) headers[Value(shard.shard())] = pulled->header;
    return pulled.status();
  });
}

}  // namespace slipstream
