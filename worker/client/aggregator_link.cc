#include "worker/client/aggregator_link.h"

#include <fmt/format.h>

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
      now_(options.retry.now),
      channel_(address_, ChannelOptions(options), cancel),
      stream_(channel_, options, cancel) {}

void AggregatorLink::OnFailure(const absl::Status& why) {
  stream_.Close();
  channel_.OnFailure();
  if (next_pause_ == kFirstPause) {
    LogWarning("aggregator cannot be used, going to the shard",
               {{"at", address_}, {"reason", why.message()}});
  }
  paused_until_ = now_() + next_pause_;
  next_pause_ = std::min(2 * next_pause_, kPauseMax);
}

void AggregatorLink::OnRefusal(const PushReply& refusal) {
  const bool is_failure =
      refusal.outcome != PushOutcome::kNotCombined || ++not_combined_ >= kNotCombinedMax;
  if (is_failure) {
    OnFailure(absl::FailedPreconditionError(
        fmt::format("{}: {}", Name(refusal.outcome), refusal.message)));
  } else if (!std::exchange(has_logged_a_refusal_, true)) {
    LogInfo("the aggregator has not combined a push, which goes to the shard",
            {{"at", address_}, {"reason", refusal.message}});
  }
}

void AggregatorLink::OnAnswer() {
  if (next_pause_ != kFirstPause) LogInfo("going to the aggregator again", {{"at", address_}});
  next_pause_ = kFirstPause;
  not_combined_ = 0;
}

}  // namespace slipstream
