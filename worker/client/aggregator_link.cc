#include "worker/client/aggregator_link.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"

namespace slipstream {
namespace {

/// A call waits for so long to reach an aggregator whose machine is gone; then the shard gets it.
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);

ShardChannel::Options ChannelOptions(const ShardOptions& options) {
  ShardChannel::Options channel = options.channel;
  channel.answer_timeout = std::min(channel.answer_timeout, kConnectTimeout);
  return channel;
}

}  // namespace

AggregatorLink::AggregatorLink(std::string address, const ShardOptions& options,
                               CancelSwitch& cancel)
    : address_(std::move(address)),
      channel_(address_, ChannelOptions(options), cancel),
      stream_(channel_, options, cancel) {}

void AggregatorLink::Leave(const absl::Status& why, bool is_first) {
  stream_.Close();
  channel_.OnFailure();
  if (!is_first) return;
  LogWarning("aggregator cannot be used, going to the shard",
             {{"at", address_}, {"reason", why.message()}});
}

void AggregatorLink::LogNotCombined(const absl::Status& why) {
  if (std::exchange(has_logged_a_refusal_, true)) return;
  LogInfo("the aggregator has not combined a push, which goes to the shard",
          {{"at", address_}, {"reason", why.message()}});
}

void AggregatorLink::LogUsedAgain() {
  LogInfo("going to the aggregator again", {{"at", address_}});
}

}  // namespace slipstream
