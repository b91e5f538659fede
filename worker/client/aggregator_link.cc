#include "worker/client/aggregator_link.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"

namespace slipstream {
namespace {

/// A call waits for so long to reach an aggregator whose machine is gone; then the shard gets it.
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);

ShardOptions WithConnectTimeout(ShardOptions options) {
  absl::Duration& timeout = options.channel.answer_timeout;
  timeout = std::min(timeout, kConnectTimeout);
  return options;
}

}  // namespace

AggregatorLink::AggregatorLink(std::string address, ShardOptions options, ArenaLoan& loan,
                               CancelSwitch& cancel)
    : options_(WithConnectTimeout(std::move(options))),
      connection_(std::move(address), options_, loan, cancel) {}

void AggregatorLink::Leave(const absl::Status& why, bool is_first) {
  connection_.Close();
  connection_.channel().OnFailure();
  if (!is_first) return;
  LogWarning("aggregator cannot be used, going to the shard",
             {{"at", connection_.channel().address()}, {"reason", why.message()}});
}

void AggregatorLink::LogNotCombined(const absl::Status& why) {
  if (std::exchange(has_logged_a_refusal_, true)) return;
  LogInfo("the aggregator has not combined a push, which goes to the shard",
          {{"at", connection_.channel().address()}, {"reason", why.message()}});
}

void AggregatorLink::LogUsedAgain() {
  LogInfo("going to the aggregator again", {{"at", connection_.channel().address()}});
}

}  // namespace slipstream
