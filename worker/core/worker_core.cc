#include "worker/core/worker_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "worker/core/push_verdict.h"

namespace slipstream {

WorkerCore::WorkerCore(const Options& options) : options_(options), shards_(options.shards) {
  PS_CHECK(options.shards > 0);
}

WorkerCore::Action WorkerCore::Next() const {
  return options_.has_rounds ? NextOfRounds() : NextOfUnits();
}

std::optional<WorkerCore::Action> WorkerCore::PullWhatIsMissing() const {
  Version newest{};
  for (const ShardState& shard : shards_) {
    if (shard.is_held) newest = std::max(newest, shard.version);
  }
  PullShards missing;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].is_held) continue;
    missing.pulls.push_back({ShardId{i}, options_.has_rounds ? newest : Version{}});
  }
  if (missing.pulls.empty()) return std::nullopt;
  return missing;
}

WorkerCore::Action WorkerCore::NextOfRounds() const {
  if (std::optional<Action> pull = PullWhatIsMissing()) return *std::move(pull);
  const auto older = [](const ShardState& a, const ShardState& b) { return a.version < b.version; };
  const Version newest = std::max_element(shards_.begin(), shards_.end(), older)->version;
  // Who joins between two updates finds shards apart. Those behind wait for this worker in a round
  // that the others have closed without it; excusing it there brings them level.
  ExcuseShards behind;
  ExcuseShards all;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].version < newest) behind.shards.push_back(ShardId{i});
    all.shards.push_back(ShardId{i});
  }
  if (!behind.shards.empty()) return behind;
  switch (work_->kind) {
    case RoundWork::Kind::kCompute:
      return ComputeBatch{work_->batch, true};
    case RoundWork::Kind::kExcused:
      return all;
    case RoundWork::Kind::kFinished:
      break;
  }
  return Finished{};
}

WorkerCore::Action WorkerCore::NextOfUnits() const {
  if (units_.is_finished()) return Finished{};
  const std::optional<uint64_t> batch = units_.batch();
  if (!batch) return AwaitUnit{};
  if (std::optional<Action> pull = PullWhatIsMissing()) return *std::move(pull);
  return ComputeBatch{*batch, units_.has_more()};
}

absl::Status WorkerCore::OnReply(ShardId shard, const PushReply& reply) {
  ShardState& state = shards_.at(Value(shard));
  switch (Judge(reply.outcome)) {
    case PushVerdict::kTaken:
      state.sequence = slipstream::Next(state.sequence);
      break;
    case PushVerdict::kPullAgain:
      break;
    case PushVerdict::kSendAgain:
      PS_CHECK(false);
      break;
    case PushVerdict::kGiveUp:
      return Refusal(shard, reply);
  }
  state.is_held = false;
  return absl::OkStatus();
}

absl::Status WorkerCore::OnWeights(ShardId shard, const WeightsHeader& header) {
  ShardState& state = shards_.at(Value(shard));
  const std::string name = "shard " + std::to_string(Value(shard));
  if (header.version < state.version) {
    return absl::AbortedError(name + " went back from version " +
                              std::to_string(Value(state.version)) + " to " +
                              std::to_string(Value(header.version)));
  }
  if (options_.has_rounds && Value(shard) == 0) {
    if (!header.work) return absl::InternalError(name + " sent weights without work");
    work_ = header.work;
  }
  state.version = header.version;
  state.is_held = true;
  return absl::OkStatus();
}

void WorkerCore::OnBatchDone() {
  if (!options_.has_rounds) units_.Done();
}

}  // namespace slipstream
