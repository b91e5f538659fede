#include "worker/client/weights_reader.h"

#include <algorithm>

namespace slipstream {
namespace {

constexpr int kTriesMax = 5;

}  // namespace

absl::StatusOr<std::vector<Version>> WeightsReader::Read(bool one_version,
                                                         std::span<float> weights) {
  std::vector<Version> versions(group_.map().shards());
  absl::Status status = Pull(group_.all(), Version{}, weights, versions);
  for (int i = 0; status.ok() && one_version && i < kTriesMax; ++i) {
    const Version newest = *std::max_element(versions.begin(), versions.end());
    std::vector<ShardId> behind;
    for (const ShardId shard : group_.all()) {
      if (versions[Value(shard)] < newest) behind.push_back(shard);
    }
    if (behind.empty()) break;
    status = Pull(behind, newest, weights, versions);
  }
  if (!status.ok()) return status;
  return versions;
}

absl::Status WeightsReader::Pull(const std::vector<ShardId>& shards, Version min_version,
                                 std::span<float> weights, std::vector<Version>& versions) {
  const PullRequest request{identity_, group_.map().fingerprint(), min_version, false, 0};
  return group_.Run(shards, [&](ShardClient& shard) {
    const absl::StatusOr<WeightsHeader> header =
        shard.Pull(request, shard.ArrivalOf(weights, nullptr));
    if (header.ok()) versions[Value(shard.shard())] = header->version;
    return header.status();
  });
}

}  // namespace slipstream
