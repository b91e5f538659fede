#include "worker/client/shard_group.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "worker/client/retry_pause.h"

namespace slipstream {
namespace {

/// What was sent must be let go of before the caller may write there; an answered push is, at once.
constexpr absl::Duration kReturnTimeout = absl::Seconds(30);

template <typename T>
std::span<T> Part(std::span<T> whole, ParameterRange range) {
  return whole.subspan(range.begin, range.size());
}

}  // namespace

ShardGroup::ShardGroup(const std::vector<std::string>& servers, const ShardMap& map,
                       const Options& options, Sleeper sleeper, CancelSwitch& cancel)
    : map_(map),
      options_(options),
      sleeper_(std::move(sleeper)),
      cancel_(cancel),
      lanes_(map.shards()) {
  PS_CHECK(servers.size() == map.shards());
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    clients_.push_back(std::make_unique<ShardClient>(servers[shard], options.client, cancel));
    all_.push_back(ShardId{shard});
  }
}

absl::Status ShardGroup::Run(const std::vector<ShardId>& shards, const ShardLanes::Work& work) {
  return lanes_.Run(shards, [this, &work](ShardId shard) {
    absl::Status status = work(shard);
    if (!status.ok()) cancel_.Throw();
    return status;
  });
}

absl::Status ShardGroup::Pause(ShardId shard, absl::Duration wait) {
  const bool goes_on = PauseBeforeRetry(client(shard).channel(), wait, sleeper_);
  if (!goes_on || cancel_.thrown()) return absl::CancelledError("stopped");
  return absl::OkStatus();
}

absl::Status ShardGroup::Retry(ShardId shard, const std::function<absl::Status()>& once) {
  std::optional<RetrySchedule> schedule;
  for (;;) {
    const absl::Status status = once();
    if (cancel_.thrown() && !status.ok()) return absl::CancelledError("stopped");
    if (!IsTransient(status)) return status;
    const absl::Time now = absl::Now();
    if (!schedule) schedule.emplace(options_.retry, options_.seed + Value(shard), now);
    const std::optional<absl::Duration> wait = schedule->Next(now);
    if (!wait) {
      return absl::UnavailableError(fmt::format("{} (tried for {})", std::string(status.message()),
                                                absl::FormatDuration(schedule->Elapsed(now))));
    }
    spdlog::warn("call failed, trying again shard={} wait={} reason=\"{}\"", Value(shard),
                 absl::FormatDuration(*wait), std::string(status.message()));
    if (absl::Status stopped = Pause(shard, *wait); !stopped.ok()) return stopped;
  }
}

absl::Status ShardGroup::Initialize(ShardId shard, const InitializeHeader& header,
                                    std::span<const float> weights) {
  InitializeHeader own = header;
  own.count = map_.range(shard).size();
  const absl::Status status =
      Retry(shard, [&] { return client(shard).Initialize(own, Part(weights, map_.range(shard))); });
  return status.ok() ? client(shard).AwaitReturn(kReturnTimeout) : status;
}

absl::StatusOr<WeightsHeader> ShardGroup::Pull(ShardId shard, const PullRequest& request,
                                               std::span<float> weights) {
  absl::StatusOr<WeightsHeader> header;
  const absl::Status status = Retry(shard, [&] {
    header = client(shard).Pull(request, Part(weights, map_.range(shard)));
    return header.status();
  });
  if (!status.ok()) return status;
  return header;
}

absl::StatusOr<ShardClient::Answer> ShardGroup::Exchange(ShardId shard, const PushHeader& header,
                                                         std::span<const float> gradient,
                                                         std::span<float> weights) {
  const std::span<const float> values =
      gradient.empty() ? gradient : Part(gradient, map_.range(shard));
  const absl::Time overload_end = absl::Now() + options_.overload_timeout;
  absl::StatusOr<ShardClient::Answer> answer;
  for (;;) {
    const absl::Status status = Retry(shard, [&] {
      answer = client(shard).Exchange(header, values, Part(weights, map_.range(shard)));
      return answer.status();
    });
    if (!status.ok()) return status;
    if (answer->push.outcome != PushOutcome::kRetryLater) break;
    if (absl::Now() > overload_end) {
      return absl::UnavailableError(fmt::format("shard at {} has been overloaded for {}",
                                                client(shard).address(),
                                                absl::FormatDuration(options_.overload_timeout)));
    }
    const absl::Duration wait = absl::Milliseconds(std::max(1u, answer->push.retry_after_ms));
    if (absl::Status stopped = Pause(shard, wait); !stopped.ok()) return stopped;
  }
  const absl::Status returned = client(shard).AwaitReturn(kReturnTimeout);
  if (!returned.ok()) return returned;
  return answer;
}

}  // namespace slipstream
