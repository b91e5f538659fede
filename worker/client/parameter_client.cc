#include "worker/client/parameter_client.h"

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "worker/core/push_verdict.h"

namespace slipstream {

ParameterClient::ParameterClient(const Options& options, Sleeper sleeper, CancelSwitch& cancel)
    : identity_(options.identity),
      core_({.shards = options.map.shards(), .has_rounds = options.has_rounds,
             .releases_unused = options.releases_unused}),
      group_(options.servers, options.map, options.group, std::move(sleeper), cancel) {}

absl::Status ParameterClient::Initialize(uint64_t grant, std::span<const float> weights) {
  const InitializeHeader header{identity_, grant, group_.map().fingerprint(), 0};
  return group_.Run(group_.all(),
                    [&](ShardId shard) { return group_.Initialize(shard, header, weights); });
}

absl::StatusOr<ParameterClient::Step> ParameterClient::Advance(std::span<float> weights) {
  for (;;) {
    const WorkerCore::Action action = core_.Next();
    absl::Status status;
    if (const auto* pull = std::get_if<WorkerCore::PullShards>(&action)) {
      status = Pull(*pull, weights);
    } else if (const auto* excuse = std::get_if<WorkerCore::ExcuseShards>(&action)) {
      status = Exchange(excuse->shards, {}, true, weights);
    } else if (const auto* release = std::get_if<WorkerCore::ReleaseShards>(&action)) {
      status = Exchange(release->shards, {}, false, weights);
    } else if (const auto* compute = std::get_if<WorkerCore::ComputeBatch>(&action)) {
      return Step(Compute{compute->batch});
    } else if (std::holds_alternative<WorkerCore::AwaitUnit>(action)) {
      return Step(AwaitUnit{});
    } else {
      return Step(Finished{});
    }
    if (!status.ok()) return status;
  }
}

absl::Status ParameterClient::Push(const Gradient& gradient, std::span<float> weights) {
  const WorkerCore::Action action = core_.Next();
  const auto* compute = std::get_if<WorkerCore::ComputeBatch>(&action);
  PS_CHECK(compute != nullptr && compute->batch == gradient.batch);
  PS_CHECK(gradient.values.size() == group_.map().parameters());
  absl::Status status = Exchange(group_.all(), gradient, compute->pull, weights);
  if (status.ok()) core_.OnBatchDone();
  return status;
}

absl::Status ParameterClient::Pull(const WorkerCore::PullShards& action, std::span<float> weights) {
  std::vector<ShardId> shards;
  std::vector<PullRequest> requests(group_.map().shards());
  std::vector<WeightsHeader> headers(group_.map().shards());
  for (const WorkerCore::ShardPull& pull : action.pulls) {
    shards.push_back(pull.shard);
    requests[Value(pull.shard)] = {identity_, group_.map().fingerprint(), pull.min_version, true,
                                   0};
  }
  absl::Status status = group_.Run(shards, [&](ShardId shard) {
    absl::StatusOr<WeightsHeader> header = group_.Pull(shard, requests[Value(shard)], weights);
    if (!header.ok()) return header.status();
    headers[Value(shard)] = *std::move(header);
    return absl::OkStatus();
  });
  for (size_t i = 0; status.ok() && i < shards.size(); ++i) {
    status = core_.OnWeights(shards[i], headers[Value(shards[i])]);
  }
  return status;
}

absl::Status ParameterClient::Exchange(const std::vector<ShardId>& shards, const Gradient& gradient,
                                       bool pull, std::span<float> weights) {
  std::vector<ShardClient::Answer> answers(group_.map().shards());
  absl::Status status = group_.Run(shards, [&](ShardId shard) {
    PushHeader header;
    header.identity = identity_;
    header.sequence = core_.sequence(shard);
    header.shard_map = group_.map().fingerprint();
    header.base = core_.version(shard);
    header.examples = gradient.examples;
    header.batch = gradient.batch;
    header.pull = pull;
    absl::StatusOr<ShardClient::Answer> answer =
        group_.Exchange(shard, header, gradient.values, weights);
    if (!answer.ok()) return answer.status();
    answers[Value(shard)] = *std::move(answer);
    const PushReply& reply = answers[Value(shard)].push;
    // Fails the lane, so that the others do not wait for a round that will not come.
    return Judge(reply.outcome) == PushVerdict::kGiveUp ? Refusal(shard, reply) : absl::OkStatus();
  });
  for (size_t i = 0; status.ok() && i < shards.size(); ++i) {
    const ShardClient::Answer& answer = answers[Value(shards[i])];
    status = core_.OnReply(shards[i], answer.push);
    if (status.ok() && answer.weights) status = core_.OnWeights(shards[i], *answer.weights);
  }
  return status;
}

}  // namespace slipstream
