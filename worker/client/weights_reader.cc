#include "worker/client/weights_reader.h"

#include <algorithm>

#include "common/base/mutex.h"
#include "worker/core/weights_reading.h"

namespace slipstream {

absl::StatusOr<WeightsReader::Reading> WeightsReader::Read(std::span<float> weights) {
  WeightsReading reading(identity_, group_.map().fingerprint(), group_.map().shards());
  Mutex mutex;
  while (!reading.due().empty()) {
    const absl::Status status = group_.Run(reading.due(), [&](ShardClient& shard) {
      const absl::StatusOr<ShardClient::Pulled> pulled =
          shard.Pull(reading.request(), shard.ArrivalOf(weights, nullptr));
      MutexLock lock(mutex);
      if (pulled.ok()) reading.OnPulled(shard.shard(), pulled->header);
      return pulled.status();
    });
    if (!status.ok()) return status;
    reading.GoOn();
  }
  Reading read;
  for (const WeightsHeader& header : reading.headers()) read.versions.push_back(header.version);
  read.examples = std::ranges::min(reading.headers(), {}, &WeightsHeader::examples).examples;
  return read;
}

}  // namespace slipstream
