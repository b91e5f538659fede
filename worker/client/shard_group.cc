#include "worker/client/shard_group.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/wire/chunk_bytes.h"
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

ShardGroup::Options ShardGroup::OptionsFor(const RunSpec& settings, const ShardMap& map) {
  Options options;
  options.client.chunk_bytes = ChunkBytes(settings.wire.chunk_bytes, map, settings.wire.push_codec);
  options.push_encoding = settings.wire.push_codec;
  options.client.weights_encoding = settings.wire.pull_codec;
  options.client.channel.transport = settings.wire.transport;
  options.alone_bytes_max = AloneBytesMax(settings.wire.chunk_bytes);
  return options;
}

ShardGroup::ShardGroup(const std::vector<std::string>& servers, const ShardMap& map,
                       const Options& options, Sleeper sleeper, CancelSwitch& cancel)
    : map_(map),
      options_(options),
      sleeper_(std::move(sleeper)),
      cancel_(cancel),
      lanes_(map.shards()) {
  PS_CHECK(servers.size() == map.shards());
  PS_CHECK(options.client.arena == nullptr || options.push_encoding == Encoding::kFp32);
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    clients_.push_back(std::make_unique<ShardClient>(servers[shard], options.client, cancel));
    all_.push_back(ShardId{shard});
  }
}

absl::Status ShardGroup::Run(const std::vector<ShardId>& shards, const ShardLanes::Work& work) {
  return lanes_.Run(shards, [&](ShardId shard) {
    absl::Status status = work(shard);
    if (!status.ok()) EndCalls();
    return status;
  });
}

void ShardGroup::Start(ShardLanes::Work work) { lanes_.Start(all_, std::move(work)); }

void ShardGroup::EndCalls() { cancel_.Throw(); }

absl::Status ShardGroup::Pause(ShardId shard, absl::Duration wait) {
  const bool goes_on = PauseBeforeRetry(client(shard).channel(), wait, sleeper_);
  if (!goes_on || cancel_.thrown()) return absl::CancelledError("stopped");
  return absl::OkStatus();
}

bool ShardGroup::WasThere(ShardId shard, const absl::Status& failure, absl::Duration tried) {
  if (client(shard).is_answer_late()) return true;
  // So long a try was no attempt to connect: the shard waited for a gradient or a round.
  return tried >= options_.retry.give_up_after && !absl::IsDeadlineExceeded(failure);
}

absl::Status ShardGroup::Retry(ShardId shard, const std::function<absl::Status()>& once) {
  std::optional<RetrySchedule> schedule;
  for (;;) {
    const absl::Time begun = options_.retry.now();
    const absl::Status status = once();
    if (cancel_.thrown() && !status.ok()) return absl::CancelledError("stopped");
    if (!IsTransient(status)) return status;
    if (WasThere(shard, status, options_.retry.now() - begun)) schedule.reset();
    if (!schedule) schedule.emplace(options_.retry, options_.seed + Value(shard));
    const std::optional<absl::Duration> wait = schedule->Next(status);
    if (!wait) return schedule->GivenUp(status, status.message());
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

WeightsArrival ShardGroup::ArrivalOf(ShardId shard, std::span<float> weights,
                                     WeightsListener* listener) const {
  const ParameterRange range = map_.range(shard);
  return WeightsArrival(Part(weights, range), range.begin, listener);
}

absl::StatusOr<WeightsHeader> ShardGroup::Pull(ShardId shard, const PullRequest& request,
                                               WeightsArrival weights) {
  const absl::Status status = Retry(shard, [&] { return client(shard).Pull(request, weights); });
  if (!status.ok()) return status;
  weights.Finish();
  return *weights.header();
}

absl::Status ShardGroup::Exchange(ShardId shard, ShardExchange& exchange) {
  const absl::Time overload_end = options_.retry.now() + options_.overload_timeout;
  for (;;) {
    absl::StatusOr<PushReply> reply;
    const absl::Status status = Retry(shard, [&] {
      // Of a shard that is away nobody waits for an answer that nobody wants.
      const bool is_given_up = exchange.feed != nullptr && exchange.feed->is_aborted();
      if (is_given_up) return absl::AbortedError("the step was given up");
      reply = client(shard).Exchange(exchange);
      return reply.status();
    });
    if (!status.ok()) return status;
    if (reply->outcome != PushOutcome::kRetryLater) break;
    if (options_.retry.now() > overload_end) {
      return absl::UnavailableError(fmt::format("shard at {} has been overloaded for {}",
                                                client(shard).address(),
                                                absl::FormatDuration(options_.overload_timeout)));
    }
    const absl::Duration wait = absl::Milliseconds(std::max(1u, reply->retry_after_ms));
    if (absl::Status stopped = Pause(shard, wait); !stopped.ok()) return stopped;
  }
  // The last weights let the next step go on, which may write the gradient anew.
  const absl::Status returned = client(shard).AwaitReturn(kReturnTimeout);
  if (returned.ok() && exchange.weights.is_complete()) exchange.weights.Finish();
  return returned;
}

}  // namespace slipstream
