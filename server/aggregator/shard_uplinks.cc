#include "server/aggregator/shard_uplinks.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "common/settings/policy_rows.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"
#include "worker/client/weights_arrival.h"
#include "worker/core/call_tries.h"

namespace slipstream {
namespace {

class ShardUplink final : public Uplink {
 public:
  ShardUplink(ShardClient::Place place, uint64_t shard_map, const ShardOptions& options,
              Sleeper sleeper, CancelSwitch& cancel)
      : shard_map_(shard_map), client_(std::move(place), options, std::move(sleeper), cancel) {}

  absl::StatusOr<ExchangeAnswer> Exchange(const PushHeader& composite,
                                          std::span<const float> values,
                                          std::span<float> weights) override {
    absl::StatusOr<ExchangeAnswer> answer = Push(composite, values, weights);
    // The connection may still hold values of a push that has failed, and the caller reuses them.
    if (!answer.ok()) (void)client_.AwaitReturn();
    return answer;
  }

  absl::StatusOr<WeightsHeader> Pull(const Identity& worker, Version min_version,
                                     Generation min_generation, std::span<float> weights) override {
    const PullRequest request = {.identity = worker,
                                 .shard_map = shard_map_,
                                 .min_version = min_version,
                                 .min_generation = min_generation};
    absl::StatusOr<ShardClient::Pulled> pulled = client_.Pull(request, WeightsArrival(weights));
    if (!pulled.ok()) return pulled.status();
    return std::move(pulled->header);
  }

 private:
  absl::StatusOr<ExchangeAnswer> Push(const PushHeader& composite, std::span<const float> values,
                                      std::span<float> weights) {
    ShardExchange exchange(client_, {.header = composite, .values = values},
                           WeightsArrival(weights));
    ExchangeAnswer last;
    // A try that breaks off while weights arrive has another answer.
    for (;;) {
      absl::StatusOr<std::optional<ExchangeAnswer>> next = exchange.Next();
      if (!next.ok()) return next.status();
      if (!next->has_value()) return last;
      last = {.push = std::move((*next)->push), .weights = std::move((*next)->weights)};
      if (last.weights.has_value() && last.weights->parts.size() != composite.parts.size()) {
        return absl::InternalError("answer: not one for each part of a push");
      }
    }
  }

  const uint64_t shard_map_;
  ShardClient client_;
};

}  // namespace

absl::Duration ShardUplinks::PatienceIn(const RunSpec& run) {
  const std::vector<PolicyStage> stages = run.stages();
  const bool has_rounds_of_all = std::ranges::any_of(
      stages, [](const PolicyStage& stage) { return stage.consistency.traits().one_per_member; });
  const bool waits = run.durability.saves() && has_rounds_of_all;
  return waits ? MembersPatience(run.cluster.lease) : kGiveUpAfter;
}

ShardOptions ShardUplinks::OptionsOf(uint64_t run, const ShardMap& map) const {
  ShardOptions options = ShardOptions::For(options_.run, map);
  options.push_encoding = Encoding::kFp32;
  options.weights_encoding = Encoding::kFp32;
  const uint32_t number =
      options_.run.cluster.AggregatorNumber(options_.group, Value(options_.shard));
  // The setting is for workers. An aggregator may be on another machine than they.
  const bool is_tcp = options_.run.wire.transport == WireSpec::Transport::kTcp;
  options.channel.transport = is_tcp ? WireSpec::Transport::kTcp : WireSpec::Transport::kAuto;
  options.channel.identity.run = run;
  options.channel.server = number;
  options.channel.credentials = options_.credentials;
  options.channel.addresses = &addresses_;
  options.retry.give_up_after = PatienceIn(options_.run);
  options.overload_timeout = options.retry.give_up_after;
  options.seed = number;
  return options;
}

std::unique_ptr<Uplink> ShardUplinks::Make(const std::string& address, uint64_t run,
                                           const ShardMap& map) {
  return std::make_unique<ShardUplink>(
      ShardClient::Place{
          .shard = options_.shard, .address = address, .range = map.range(options_.shard)},
      map.fingerprint(), OptionsOf(run, map), [this](absl::Duration wait) { return Pause(wait); },
      cancel_);
}

void ShardUplinks::Stop() {
  cancel_.Throw();
  MutexLock lock(mutex_);
  is_stopping_ = true;
  stopping_.NotifyAll();
}

bool ShardUplinks::Pause(absl::Duration duration) {
  using Clock = std::chrono::steady_clock;
  MutexLock lock(mutex_);
  const Clock::time_point end = Clock::now() + absl::ToChronoNanoseconds(duration);
  while (!is_stopping_ && Clock::now() < end) stopping_.WaitUntil(mutex_, end);
  return !is_stopping_;
}

}  // namespace slipstream
